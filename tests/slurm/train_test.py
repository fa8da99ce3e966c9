# SPDX-License-Identifier: Apache-2.0
"""`sbatch slurm/cifar10.sh` trains as mpirun does, and a job that is preempted goes on by itself to the same bits, without
losing more than the step it was in. Usage: train_test.py"""
import os
import subprocess
import sys
import time

from cluster import Cluster, enter_or_skip
from jobs import sbatch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../end_to_end"))
from runner import CONVOY, PREPROCESS, SOURCE, check, everything, last, records, same_bits  # noqa: E402

OPTIONS = ["--threads", "1", "--no-tensorboard", "--print-freq", "1"]


class Training:
    """The job of slurm/cifar10.sh on a tiny data set, and what mpirun makes of it."""

    def __init__(self, cluster, epochs):
        self.cluster, self.folder, self.options = cluster, cluster.work, [*OPTIONS, "--epochs", str(epochs)]
        self.data = self.folder / "data"
        subprocess.run([PREPROCESS, "synthetic", "--out", self.data, "--partitions", "3", "--samples", "1200", "--val-samples",
                        "200"], check=True, stdout=subprocess.DEVNULL)

    def start_reference(self, ranks):
        run = self.folder / f"reference-{ranks}"
        command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), CONVOY, "train", "--config",
                   f"{SOURCE}/configs/tiny.cfg", "--data", self.data, "--output-dir", run, *self.options]
        return run, subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def submit(self, name, hosts, *words, launcher="srun --mpi=pmix", options=(), **variables):
        """One rank a host."""
        run = self.folder / name
        return run, sbatch(self.folder / f"{name}.log", f"--nodes={hosts}", "--ntasks-per-node=1", *words, "slurm/cifar10.sh",
                           *self.options, *options, DATA=self.data, CONFIG="configs/tiny.cfg", OUTPUT=run, CONVOY=CONVOY,
                           CONVOY_LAUNCHER=launcher, **variables)

    @staticmethod
    def steps(run):
        try:
            return [record["step"] for record in records(run, "train")]
        except (OSError, ValueError):  # not there yet, or a line half written
            return []


def compare(training, reference, run, job, what):
    best = max(record["top1"] for record in records(run, "val"))
    check(same_bits(everything(last(reference)), everything(last(run))), f"{what}: the same bits as under mpirun, {best:.1f} % top-1")
    check(training.steps(run) == training.steps(reference), f"{what}: every step is in the log once")
    check("finished" in job.text() or job.state() == "COMPLETED", f"{what}: the job has ended well")


def main():
    began = time.monotonic()
    with Cluster(enter_or_skip()) as cluster:
        training = Training(cluster, epochs=6)
        # The jobs wait most of the time: for Slurm, which requeues after 5 s and looks at time limits every 30 s.
        warned_run, warned = training.submit("warned", 2, "--time=2", "--signal=B:USR1@115")
        two, reference = training.start_reference(2)
        straight_run, straight = training.submit("straight", 2)
        reference.wait()
        straight.wait(60)
        compare(training, two, straight_run, straight, "2 hosts, srun")
        print(time.monotonic()-began)
        requeued_run, requeued = training.submit("requeued", 4, launcher="mpirun")
        requeued.wait_for(lambda: len(training.steps(requeued_run)) > 12, 60, "12 steps")
        subprocess.run(["scontrol", "requeue", requeued.number], check=True)
        four, reference = training.start_reference(4)
        reference.wait()
        warned.wait(100)
        print(warned.text())
        check(warned.restarts() >= 1, "--signal=B:USR1 came, and the job submitted itself again")
        compare(training, two, warned_run, warned, "2 hosts, srun, stopped by --signal=USR1")
        print(time.monotonic()-began)
        requeued.wait(100)
        print(requeued.text())
        check(requeued.restarts() == 1, "scontrol requeue started the job again")
        compare(training, four, requeued_run, requeued, "4 hosts, mpirun, requeued")
        print(time.monotonic()-began)
        check(cluster.processes("convoy", "orted", "mpirun", "slurmstepd") == [], "no process is left on any host")


if __name__ == "__main__":
    main()
