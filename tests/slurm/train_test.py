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


def requeues(training):
    pace = training.pace("requeued", 12)
    run, job = training.submit("requeued", 4, launcher="mpirun", program=pace.program)
    job.wait_for(lambda: len(training.steps(run)) > 12, 60, "12 steps")
    subprocess.run(["scontrol", "requeue", job.number], check=True)
    pace.hurry()
    return run, job


def is_warned(training):
    """Slurm signals this job 2 to 32 s after its start, which crawls for 50 s: how fast the machine is decides only whether it
    comes in a step, at start-up, or before."""
    pace = training.pace("warned", 0, 1)
    wait_for_look(training.cluster, 2.5)
    run, job = training.submit("warned", 2, "--time=2", "--signal=B:USR1@118", program=pace.program)
    job.wait_for(lambda: "submits itself again" in job.text(), 90, "stop by --signal")
    pace.hurry()
    subprocess.run(["scontrol", "update", f"JobId={job.number}", "TimeLimit=10"], check=True)  # no signal in the next start
    return run, job


def main():
    with Cluster(enter_or_skip()) as cluster:
        training = Training(cluster)
        two, four = training.reference(2), training.reference(4)
        straight_run, straight = training.submit("straight", 2)
        training.compare(two, straight_run, straight, "2 hosts, srun")

        requeued_run, requeued = requeues(training)
        warned_run, warned = is_warned(training)
        training.compare(four, requeued_run, requeued, "4 hosts, mpirun, scontrol requeue")
        check(requeued.restarts() == 1, "it was started twice")
        training.compare(two, warned_run, warned, "2 hosts, srun, --signal=B:USR1")
        check(warned.restarts() == 1, "it stopped on the signal and went on by itself")
        check(len(training.steps(warned_run)) == len(set(training.steps(warned_run))), "no step was made twice")
        training.nothing_left()


if __name__ == "__main__":
    main()
