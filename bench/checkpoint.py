# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of two ranks: seconds from the end of a step to a verified file in place, seconds for which the steps stood still and
what a plain copy of the state takes, and seconds from the start of the program to the first finished step, afresh and resumed. Prints
a row of bench/results.md a network.  usage: bench/checkpoint.py [ROUNDS]  (builds nothing; CONVOY names the program)"""
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONVOY = os.environ.get("CONVOY", str(ROOT / "build/release/src/cli/convoy"))
NETWORKS = {"resnet20": ["--synthetic-size", 32, "--batch-size", 16], "resnet152": ["--synthetic-size", 64, "--batch-size", 1]}


def train(model, folder, *words):
    """Seconds until the first step was logged."""
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2", CONVOY, "train", "--synthetic", "--synthetic-samples", "64",
               "--model", model, "--output-dir", folder, "--print-freq", "1", "--skip-eval", "--save-every", "0", "--no-tensorboard", *words]
    before = steps(folder)
    begin = time.time()
    job = subprocess.Popen([str(w) for w in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                           env=dict(os.environ, OMPI_MCA_mpi_yield_when_idle="1"))
    while job.poll() is None and steps(folder) == before:
        time.sleep(0.002)
    first = time.time() - begin
    if job.wait() != 0:
        sys.exit(f"{command} ended with {job.returncode}: {job.stderr.read()}")
    return first


def steps(folder):
    try:
        with open(f"{folder}/metrics.jsonl", encoding="utf-8") as file:
            return max([json.loads(line).get("step", 0) for line in file if '"split":"train"' in line], default=0)
    except (OSError, ValueError):
        return 0


def copy_seconds(count):
    source = np.ones(count, dtype=np.uint8)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        source.copy()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def text(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    for model, words in NETWORKS.items():
        saves, stalls, fresh, resumed, size = [], [], [], [], 0
        for _ in range(rounds):
            with tempfile.TemporaryDirectory(prefix="convoy-bench-", dir=os.environ.get("CONVOY_BENCH_DIR")) as folder:
                fresh.append(train(model, folder, *words, "--epochs", 9, "--max-steps", 3, "--save-every-steps", 2))
                resumed.append(train(model, folder, *words, "--epochs", 9, "--max-steps", 2, "--resume", "auto"))
                with open(f"{folder}/state.json", encoding="utf-8") as file:
                    checkpoint = json.load(file)["checkpoint"]
                saves.append(checkpoint["seconds"])
                stalls.append(checkpoint["stall"])
                size = os.path.getsize(f"{folder}/checkpoints/last.h5")
        print(f"| {datetime.date.today()} | {model} | {size / 1e6:.0f} | {text(saves)} | {text(stalls, 3)} | {copy_seconds(size):.3f} | "
              f"{text(fresh)} | {text(resumed)} | {rounds} | {os.cpu_count()} x {cpu} |", flush=True)


if __name__ == "__main__":
    main()
