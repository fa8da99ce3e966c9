# SPDX-License-Identifier: Apache-2.0
"""--data-cache stage while another process copies for longer than the deadlines: ranks wait for it, do not end the job, and stop if they
are asked to. Usage: staging_test.py waits|stops"""
import fcntl
import glob
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "end_to_end"))
from runner import CONVOY, PREPROCESS, check, last, mpirun, run, work_folder  # noqa: E402

DEADLINE = 2  # seconds


class Copier:
    """Another process of the host, which copies one partition."""

    def __init__(self, work):
        self.folder = f"{work}/stage"
        run(1, "synthetic", "--out", f"{work}/data", "--samples", 64, "--val-samples", 8, "--image-size", 16, "--partitions", 2, program=PREPROCESS)
        job = self.start(work, "first")
        check(job.wait(60) == 0, "a job makes the copies")
        locks = sorted(glob.glob(f"{self.folder}/*/train-*.lock"))
        for copy in glob.glob(f"{self.folder}/*/train-*.h5"):
            os.remove(copy)
        self.file = open(locks[-1], "w", encoding="utf-8")  # pylint: disable=consider-using-with
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def start(self, work, name):
        words = ["train", "--data", f"{work}/data", "--data-cache", "stage", "--stage-dir", self.folder, "--model", "lenet", "--batch-size", 8,
                 "--max-steps", 2, "--skip-eval", "--threads", 1, "--no-tensorboard", "--output-dir", f"{work}/{name}",
                 "--stall-abort-seconds", DEADLINE, "--stall-warning-seconds", DEADLINE, "--watchdog-seconds", DEADLINE]
        return subprocess.Popen(mpirun(2) + [CONVOY, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=dict(os.environ, OMP_NUM_THREADS="1"))

    def ends(self):
        self.file.close()


def waits(work):
    """Rank 1's partition is copied elsewhere for three times the deadlines; rank 0 has loaded its own long before."""
    copier = Copier(work)
    job = copier.start(work, "run")
    threading.Timer(3 * DEADLINE, copier.ends).start()
    out, err = job.communicate(timeout=60)
    check(job.returncode == 0, f"the job waits, and ends with {job.returncode}" + ("" if job.returncode == 0 else out + err))
    check(os.path.exists(last(f"{work}/run")), "it has trained")


def stops(work):
    copier = Copier(work)
    job = copier.start(work, "run")
    begin = time.time()
    while not os.path.exists(f"{work}/run/log.txt") and time.time() - begin < 30:
        time.sleep(0.01)
    time.sleep(0.5)
    job.send_signal(signal.SIGUSR1)
    out, err = job.communicate(timeout=30)
    check(job.returncode == 75, f"asked to stop: ends with {job.returncode}" + ("" if job.returncode == 75 else out + err))
    copier.ends()
    check(not glob.glob(f"{copier.folder}/*/*.tmp"), "nothing half-written is left")


if __name__ == "__main__":
    with work_folder() as work_path:
        {"waits": waits, "stops": stops}[sys.argv[1]](work_path)
