# SPDX-License-Identifier: Apache-2.0
"""The other job scripts: the flagship starts on all hosts, a sweep runs as an array, data are prepared, a run is evaluated."""
import json
import os
import subprocess

import numpy as np
from cluster import Cluster, enter_or_skip
from jobs import ENDED, sbatch
from training import CONVOY, PREPROCESS, check, records

SMALL = ["--threads", "1", "--no-tensorboard"]
PLACES = ["--nodes=2", "--ntasks-per-node=2"]


def prepares(cluster):
    raw, data = cluster.work / "raw", cluster.work / "cifar10"
    raw.mkdir()
    rng = np.random.default_rng(1)
    for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"):
        rows = rng.integers(0, 256, (40, 3073), dtype=np.uint8)
        rows[:, 0] = np.arange(40) % 10
        (raw / name).write_bytes(rows.tobytes())
    (raw / "batches.meta.txt").write_text("\n".join(f"class{i}" for i in range(10)) + "\n", encoding="utf-8")
    job = sbatch(cluster.work / "prepare.log", *PLACES, "slurm/preprocess_imagenet.sh", "--partitions", 3, KIND="cifar10", SOURCE=raw,
                 DATA=data, CONVOY_PREPROCESS=PREPROCESS).wait(60)
    check(len(list(data.glob("train-*.h5"))) == 3 and "on 4 ranks" in job.text(), "slurm/preprocess_imagenet.sh: partitions made on 4 ranks")
    return data


def sweeps(cluster, data):
    job = sbatch(cluster.work / "sweep-%a.log", "--array=0-3%2", "--ntasks-per-node=1", "slurm/sweep.sh", *SMALL, "--epochs", 1,
                 "--batch-size", 50, DATA=data, CONFIG="configs/tiny.cfg", OUTPUT=cluster.work / "sweep", SEEDS="1 2", RATES="0.05 0.1",
                 CONVOY=CONVOY)
    cluster.until(lambda: cluster.ask("squeue", "-h", "-j", job.number) == "", 60, "the array's end")
    runs = sorted(path.name for path in (cluster.work / "sweep").iterdir())
    check(runs == ["lr-0.05-seed-1", "lr-0.05-seed-2", "lr-0.1-seed-1", "lr-0.1-seed-2"], "slurm/sweep.sh: a run for each pair")
    table = subprocess.run([CONVOY, "summary", "--format", "csv", *(cluster.work / "sweep" / run for run in runs)], text=True,
                           capture_output=True, check=True).stdout.splitlines()
    check(len(table) == 5 and all(line.endswith(",finished") for line in table[1:]), "all have finished, says convoy summary")
    return cluster.work / "sweep" / runs[0]


def evaluates(cluster, run, data):
    result = cluster.work / "evaluation"
    job = sbatch(cluster.work / "evaluate.log", "--ntasks-per-node=2", "slurm/evaluate.sh", "--threads", 1, RUN=run, DATA=data,
                 OUTPUT=result, CONVOY=CONVOY).wait(60)
    best = max(record["top1"] for record in records(run, "val"))
    found = json.loads((result / "result.json").read_text())["top1"]
    check(abs(found - best) < 1e-9 and str(found) in job.text(), "slurm/evaluate.sh: the accuracy that training saw")


def flagship(cluster):
    """ResNet-152 on one rank a host, few and small synthetic images."""
    run = cluster.work / "flagship"
    words = ("--ntasks-per-node=1", "--gpus-per-node=1", "--cpus-per-task=1", "slurm/resnet152.sh", *SMALL, "--max-steps", 1)
    usual = sbatch(cluster.work / "usual.log", "--nodes=1", *words, OUTPUT=cluster.work / "usual", CONVOY=CONVOY)
    job = sbatch(cluster.work / "flagship.log", *words, "--synthetic-samples", 64, "--synthetic-size", 32, "--image-size", 32,
                 "--batch-size", 1, "--no-checkpoints", "--skip-eval", "--print-freq", 1, OUTPUT=run, CONVOY=CONVOY, CONVOY_DEVICE="cpu").wait(100)
    check("resnet152" in job.text() and "4 ranks, 4 replicas" in job.text() and len(records(run, "train")) == 1,
          "slurm/resnet152.sh: a step on four ranks of four hosts")
    cluster.until(lambda: usual.state() in ENDED, 60, "the job that asks for GPUs")
    check("--device cuda" in usual.text() and "oneDNN" not in usual.text(), "slurm/resnet152.sh: never on cores where it was not told to")


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    with Cluster(enter_or_skip()) as one:
        prepared = prepares(one)
        evaluates(one, sweeps(one, prepared), prepared)
        flagship(one)
