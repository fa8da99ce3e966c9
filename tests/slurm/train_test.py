# SPDX-License-Identifier: Apache-2.0
"""`sbatch slurm/cifar10.sh` trains as mpirun does, and a job that is preempted goes on by itself to the same bits."""
import subprocess
import time

from cluster import Cluster, enter_or_skip
from training import Training, check

CLOCK = 30  # seconds between Slurm's looks at the time limits, from its start on


def wait_for_look(cluster, ahead):
    """Until so many seconds before Slurm looks."""
    time.sleep((cluster.began - ahead - time.monotonic()) % CLOCK)


def main():
    with Cluster(enter_or_skip()) as cluster:
        training = Training(cluster)
        two, four = training.reference(2), training.reference(4)
        straight_run, straight = training.submit("straight", 2)
        training.compare(two, straight_run, straight, "2 hosts, srun")

        requeued_run, requeued = training.submit("requeued", 4, launcher="mpirun")
        requeued.wait_for(lambda: len(training.steps(requeued_run)) > 12, 60, "12 steps")
        subprocess.run(["scontrol", "requeue", requeued.number], check=True)
        wait_for_look(cluster, 4)
        warned_run, warned = training.submit("warned", 2, "--time=2", "--signal=B:USR1@118")
        training.compare(four, requeued_run, requeued, "4 hosts, mpirun, scontrol requeue")
        check(requeued.restarts() == 1, "it was started twice")
        training.compare(two, warned_run, warned, "2 hosts, srun, --signal=B:USR1")
        check(warned.restarts() == 1 and "stopped on request (SIGUSR1)" in warned.text(), "it stopped on the signal and went on by itself")
        check(len(training.steps(warned_run)) == len(set(training.steps(warned_run))), "no step was made twice")
        training.nothing_left()


if __name__ == "__main__":
    main()
