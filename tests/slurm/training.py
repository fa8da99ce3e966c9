# SPDX-License-Identifier: Apache-2.0
"""The job of slurm/cifar10.sh on a tiny data set, submitted to a cluster, and what mpirun makes of the same work."""
import os
import pathlib
import subprocess
import sys

from jobs import sbatch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../end_to_end"))
from pace import Pace  # noqa: E402
from runner import CONVOY, PREPROCESS, SOURCE, check, everything, last, records, same_bits  # noqa: E402,F401

OPTIONS = ["--threads", "1", "--no-tensorboard", "--print-freq", "1"]
TRAINING = ("convoy", "orted", "mpirun", "srun", "slurmstepd")


class Training:
    def __init__(self, cluster, samples=800, epochs=4):
        self.cluster, self.folder, self.options = cluster, cluster.work, [*OPTIONS, "--epochs", str(epochs)]
        self.data = self.folder / "data"
        subprocess.run([PREPROCESS, "synthetic", "--out", self.data, "--partitions", "3", "--samples", str(samples), "--val-samples",
                        "200"], check=True, stdout=subprocess.DEVNULL)

    def reference(self, ranks):
        """Trains under mpirun on the login host; returns the run directory. MPI sums, as it does for the jobs on several hosts: in memory that
        the ranks share, four of them would add in another order."""
        run = self.folder / f"reference-{ranks}"
        command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), CONVOY, "train", "--config",
                   f"{SOURCE}/configs/tiny.cfg", "--data", self.data, "--output-dir", run, "--backend", "mpi", *self.options]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True, timeout=100)
        return run

    def pace(self, name, step, seconds=0.5):
        """For submit(): a program whose training crawls from that step on until hurry()."""
        return Pace(pathlib.Path(self.folder) / f"{name}.convoy", CONVOY, step, seconds)

    def submit(self, name, hosts, *words, launcher="srun --mpi=pmix", options=(), program=CONVOY, **variables):
        """One rank a host. Returns the run directory and the job."""
        run = self.folder / name
        return run, sbatch(self.folder / f"{name}.log", f"--nodes={hosts}", "--ntasks-per-node=1", *words, "slurm/cifar10.sh",
                           *self.options, *options, DATA=self.data, CONFIG="configs/tiny.cfg", OUTPUT=run, CONVOY=program,
                           CONVOY_LAUNCHER=launcher, **variables)

    @staticmethod
    def steps(run):
        try:
            return [record["step"] for record in records(run, "train")]
        except (OSError, ValueError):  # not there yet, or a line half written
            return []

    def compare(self, reference, run, job, what):
        """The job has ended well, with the bits of the reference, and did no step twice but the last one before a stop."""
        job.wait(100)
        best = max(record["top1"] for record in records(run, "val"))
        same = same_bits(everything(last(reference)), everything(last(run)))
        check(same, f"{what}: the same bits as an undisturbed run under mpirun, {best:.1f} % top-1")
        check(self.steps(run) == self.steps(reference), f"{what}: every step is in the log once")

    def nothing_left(self):
        self.cluster.until(lambda: self.cluster.processes(*TRAINING) == [], 20, "no process left on any host")
