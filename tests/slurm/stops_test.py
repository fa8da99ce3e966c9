# SPDX-License-Identifier: Apache-2.0
"""A job of four ranks on four hosts that is stopped at random moments in random ways goes on by itself, until it ends with the
bits of an undisturbed run. Usage: stops_test.py [COUNT [SEED]]: so many stops of each kind; bench/stops.sh."""
import os
import random
import signal
import subprocess
import sys
import time

from cluster import Cluster, enter_or_skip
from training import TRAINING, Training, check, everything, last, same_bits


def warn(cluster, job, _):
    """As --signal=B:USR1 does before the end."""
    subprocess.run(["scancel", "--batch", "--signal=USR1", job.number], check=True)


def requeue(cluster, job, _):
    subprocess.run(["scontrol", "requeue", job.number], check=True)


def kill_rank(cluster, job, rng):
    ranks = cluster.processes("convoy")
    if ranks:
        os.kill(rng.choice(ranks)[1], signal.SIGKILL)


def kill_launcher(cluster, job, rng):
    launchers = [process for process in cluster.processes("mpirun", "srun") if process[0] == job.hosts()[0]]
    if launchers:
        os.kill(launchers[0][1], signal.SIGKILL)


def crash(cluster, job, rng):
    """Slurm tells hosts that were away for a moment from others by the time of their boot, which is one for all here."""
    host, restarts = rng.choice(list(cluster.addresses)), job.restarts()
    cluster.crash(host)
    cluster.until(lambda: job.state() != "RUNNING" or job.restarts() > restarts, 60, f"word of the lost host {host}")
    cluster.start(host)


KINDS = {"USR1": warn, "requeue": requeue, "kill -9 of a rank": kill_rank, "kill -9 of the launcher": kill_launcher, "crash": crash}


class Disturbed:
    """A job, submitted again by the test where it ended for good before the run was done (as a user would)."""

    def __init__(self, training, number, launcher):
        self.training, self.number, self.launcher, self.jobs = training, number, launcher, 0
        self.pace = training.pace(f"disturbed-{number}", 0, 0.3)  # 8 s a run, or it is through before it was stopped
        self.submit()

    def submit(self):
        self.jobs += 1
        self.run, self.job = self.training.submit(f"disturbed-{self.number}", 4, launcher=self.launcher,
                                                  options=["--save-every-steps", 1, "--wait-for-other", 60, "--stall-warning-seconds", 5, "--stall-abort-seconds", 30],
                                                  program=self.pace.program)

    def is_done(self):
        return self.job.state() == "COMPLETED"

    def wait_until_running(self, seconds=90):
        """True while there is something to stop."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            state = self.job.state()
            if state == "RUNNING" and self.training.cluster.processes("convoy"):
                return True
            if state == "COMPLETED":
                return False
            if state in ("FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT"):
                if self.jobs > 4:
                    break
                self.submit()
            time.sleep(0.1)
        raise AssertionError(f"job {self.job.facts()}\n{self.job.text()[-5000:]}")


def main():
    count, seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1, int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rng = random.Random(seed)
    with Cluster(enter_or_skip()) as cluster:
        training = Training(cluster)
        reference = everything(last(training.reference(4)))
        left = {kind: count for kind in KINDS}
        runs, again, began = 0, 0, time.monotonic()
        while any(left.values()):
            runs += 1
            job = Disturbed(training, runs, rng.choice(["mpirun", "srun --mpi=pmix"]))
            for _ in range(4):  # a run takes some stops
                kinds = [kind for kind, number in left.items() if number > 0]
                if not kinds or not job.wait_until_running():
                    break
                time.sleep(rng.uniform(0, 4))
                if job.is_done():
                    break
                kind = rng.choice(kinds)
                KINDS[kind](cluster, job.job, rng)
                left[kind] -= 1
                time.sleep(1)
            job.pace.hurry()
            while job.wait_until_running(150):
                time.sleep(0.5)
            again += job.jobs - 1
            check(same_bits(reference, everything(last(job.run))),
                  f"run {runs} ({job.launcher.split()[0]}): the same bits; left: {left}; {time.monotonic() - began:.0f} s")
        cluster.until(lambda: cluster.processes(*TRAINING) == [], 20, "no process left")
        print(f"{count} stops of each of {len(KINDS)} kinds in {runs} runs: all ended with the same bits; {again} jobs had to be submitted by hand")


if __name__ == "__main__":
    main()
