# SPDX-License-Identifier: Apache-2.0
"""`qsub pbs/train.pbs` through Slurm's own front end for PBS: a real scheduler that reads the #PBS lines, runs the job, and runs
it again when it submits itself after a signal. What Slurm does unlike PBS is tested in tests/pbs."""
import os
import subprocess

from cluster import Cluster, enter_or_skip
from jobs import Job
from training import SOURCE, Training, check, everything, last, same_bits


def source_tree(cluster):
    """As a user's copy, with resources that this cluster has; qsub's command line can't change `select` here."""
    tree = cluster.work / "tree"
    (tree / "pbs").mkdir(parents=True)
    for name in ("scripts", "configs"):
        (tree / name).symlink_to(f"{SOURCE}/{name}")
    with open(f"{SOURCE}/pbs/train.pbs", encoding="utf-8") as script:
        text = script.read().replace("select=4:ncpus=32:mpiprocs=4:ngpus=4", "select=2:ncpus=1:mpiprocs=1")
    (tree / "pbs/train.pbs").write_text(text, encoding="utf-8")
    return tree


def main():
    with Cluster(enter_or_skip(), pbs=True) as cluster:
        training, tree = Training(cluster), source_tree(cluster)
        reference, run = training.reference(2), cluster.work / "run"
        # The front end takes no blanks in values.
        config = cluster.work / "tiny.cfg"
        with open(f"{SOURCE}/configs/tiny.cfg", encoding="utf-8") as tiny:
            text = tiny.read().replace("epochs = 6", "epochs = 4")
            config.write_text(text + "threads = 1\ntensorboard = false\nprint-freq = 1\n", encoding="utf-8")
        site = cluster.work / "site.sh"  # a job gets nothing of this environment
        with open(f"{SOURCE}/scripts/site.sh", encoding="utf-8") as usual:
            needed = "".join(f"export {name}={value}\n" for name, value in os.environ.items() if name.startswith("OMPI_"))
            site.write_text(usual.read() + needed, encoding="utf-8")
        pace = training.pace("run", 12)
        variables = dict(DATA=training.data, CONFIG=config, OUTPUT=run, CONVOY=pace.program, CONVOY_SITE=site, CONVOY_DEVICE="cpu")
        done = subprocess.run(["qsub", "-v", ",".join(f"{k}={v}" for k, v in variables.items()), "pbs/train.pbs"], cwd=tree,
                              text=True, capture_output=True, check=True)
        first = Job(done.stdout.strip(), tree / f"train.pbs.o{done.stdout.strip()}")
        first.wait_for(lambda: len(training.steps(run)) > 12, 60, "12 steps")
        subprocess.run(["scancel", "--batch", "--signal=USR1", first.number], check=True)
        pace.hurry()
        first.wait(60, state="FAILED")
        check(first.facts()["ExitCode"] == "75:0", "the first job stops on request")
        second = Job(str(int(first.number) + 1), tree / f"train.pbs.o{int(first.number) + 1}")
        second.wait(60)
        check(same_bits(everything(last(reference)), everything(last(run))), "a second job that it submitted ends with the same bits")
        check(training.steps(run) == training.steps(reference), "every step is in the log once")


if __name__ == "__main__":
    main()
