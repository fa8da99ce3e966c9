#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How far the forecasts of a dry run and of a run's first lines are from the time that three epochs on two ranks take. Prints each,
# and lines for bench/results.md.  usage: bench/forecast.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/environment.sh
exec .venv/bin/python - "${1:-5}" <<'PYTHON'
import datetime, statistics, sys
sys.path[:0] = ["bench", "tests/end_to_end"]
from machine import MACHINE
import report_test
from runner import work_folder

found = []
for _ in range(int(sys.argv[1])):
    with work_folder() as work:
        found.append(report_test.foretell(work, 7680))
for i, what in enumerate(("dry run", "first lines of the run, after 3 s of steps")):
    off = [errors[i] for errors in found]
    below = sum(error < 10 for error in off)
    print(f"| {datetime.date.today()} | {what} | median {statistics.median(off):.1f} ({min(off):.1f} to {max(off):.1f}; {below} of {len(off)} below 10) "
          f"| {len(off)} | {MACHINE} |")
PYTHON
