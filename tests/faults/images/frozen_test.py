# SPDX-License-Identifier: Apache-2.0
"""A rank of convoy-preprocess that is frozen: the others name it, its host and what they wait for, and the job ends."""
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "end_to_end"))
from runner import PREPROCESS, check, mpirun, work_folder  # noqa: E402


def process_of(folder, rank):
    """Of that rank of the job that writes into the folder."""
    for pid in subprocess.run(["pgrep", "-f", f"{folder}( |$)"], capture_output=True, text=True, check=False).stdout.split():
        try:
            with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
                if f"OMPI_COMM_WORLD_RANK={rank}\0" in file.read():
                    return int(pid)
        except OSError:
            pass  # it has ended
    return 0


def freeze(folder, rank, ranks):
    job = subprocess.Popen([*mpirun(ranks), PREPROCESS, "synthetic", "--samples", "60000", "--stall-warning-seconds", "1", "--stall-abort-seconds", "3",
                            "--out", folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    line = job.stdout.readline()  # all ranks are at work
    pid = process_of(folder, rank)
    check("source: " in line and pid > 0, f"{ranks} ranks prepare")
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    said, _ = job.communicate(timeout=60)
    check(job.returncode == 5 and time.monotonic() - began < 30, f"the job ends with code 5 (it was {job.returncode})")
    check(re.search(rf"error: waited [3-9]\.\d s in \S+ for .*did not arrive: .*rank {rank} on \S+.*its heartbeats stopped", said), f"names rank {rank}: {said}")


with work_folder() as work:
    freeze(os.path.join(work, "one"), 1, 3)
    freeze(os.path.join(work, "first"), 0, 2)
