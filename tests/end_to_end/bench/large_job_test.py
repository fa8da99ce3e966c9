# SPDX-License-Identifier: Apache-2.0
"""bench/large_job.py on a few ranks: every part of the job is found and timed."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from runner import CONVOY, SOURCE, check  # noqa: E402  (the path is set above)

done = subprocess.run([sys.executable, f"{SOURCE}/bench/large_job.py", "1", "3", "--convoy", CONVOY, "--timeout", "80"],
                      capture_output=True, text=True, timeout=170, check=False)
check(done.returncode == 0, "it ends well" if done.returncode == 0 else done.stdout + done.stderr)
head, _, *rows = [line for line in done.stdout.split("\n\n", maxsplit=1)[0].splitlines() if line]
names = [cell.strip() for cell in head.strip("|").split("|")]
check(names == ["ranks", "start and agree", "load", "9 averages", "checkpoint", "end", "in all", "empty MPI program", "MB of a rank"], "its parts")
for row, ranks in zip(rows, (1, 3), strict=True):
    values = [float(cell) for cell in row.strip("|").split("|")]
    check(values[0] == ranks and all(value >= 0 for value in values), f"{ranks} ranks")
    check(abs(sum(values[1:6]) - values[6]) < 0.05, "the parts add up to the whole")  # each is rounded to 0.01 s
