# SPDX-License-Identifier: Apache-2.0
"""Each wait of a step that is forgotten is a race to the thread sanitizer, in whatever order the step ran."""
import os
import re
import subprocess
import sys

program = sys.argv[1]


def run(**environment):
    options = {"TSAN_OPTIONS": "halt_on_error=1 symbolize=0"}
    return subprocess.run([program, "--gtest_filter=*/1"], env={**os.environ, **options, **environment}, text=True,
                          capture_output=True, timeout=100)


whole = run()
assert whole.returncode == 0, whole.stdout + whole.stderr
waits = [int(number) for number in re.findall(r"before step \d+: (\d+) waits", whole.stdout)]
steady = range(waits[-2], waits[-1] + 1)  # of the last step, and the download behind it
assert len(steady) == 3, waits
for wait in steady:
    without = run(CONVOY_DROP_WAIT=str(wait))
    assert without.returncode == 66, f"wait {wait}: exit code {without.returncode}\n{without.stdout}{without.stderr}"
    assert "ThreadSanitizer: data race" in without.stderr, without.stderr
