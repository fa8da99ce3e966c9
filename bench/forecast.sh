#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How far the forecasts of a dry run and of a run's first lines are from the time that three epochs on two ranks take. Prints each,
# and a line for bench/results.md.  usage: bench/forecast.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/environment.sh
exec .venv/bin/python - "${1:-5}" <<'PYTHON'
import datetime, os, statistics, sys
sys.path.insert(0, "tests/end_to_end")
import report_test
from runner import work_folder

found = []
for _ in range(int(sys.argv[1])):
    with work_folder() as work:
        found.append(report_test.foretell(work, 7680))
dry, first = ([round(errors[i], 1) for errors in found] for i in (0, 1))
print(f"| {datetime.date.today()} | forecast of 3 epochs against the run, percent off | dry run: median {statistics.median(dry)}, most {max(dry)}; "
      f"first lines: median {statistics.median(first)}, most {max(first)} | {len(found)} | {os.cpu_count()} cores |")
PYTHON
