#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How near training comes to the rate that its parts allow where they share the cores: 1 / (1 / io + 1 / compute). Measures by turns what
the loader makes alone, what steps compute alone, and training, each on 2 ranks of one thread and one loader thread. Prints the rates, the
median of the rounds' ratios, and a line for bench/results.md.  usage: bench/pipeline.py DATA [--model M] [--size N] [--rounds N]"""
import argparse
import datetime
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONVOY = os.environ.get("CONVOY", str(ROOT / "build/release/src/cli/convoy"))

parser = argparse.ArgumentParser()
parser.add_argument("data", help="JPEG partitions")
parser.add_argument("--model", default="resnet20")
parser.add_argument("--size", type=int, default=64)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--rounds", type=int, default=5)
args = parser.parse_args()


def call(*words):
    command = ["mpirun", "--bind-to", "none", "-np", "2", CONVOY, *map(str, words)]
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1")
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout


data = ("--data", args.data, "--augment", "imagenet", "--image-size", args.size, "--workers", 1, "--batch-size", args.batch)


def io_rate():
    out = call("bench", "io", *data, "--steps", args.steps)
    return float(re.search(r"prepare batches: .*?([\d.]+) images/s", out).group(1))


def compute_rate():
    out = call("bench", "compute", "--model", args.model, "--image-size", args.size, "--batch-size", args.batch, "--steps", args.steps,
               "--threads", 1)
    return float(re.search(r"images/s: ([\d.]+) in all", out).group(1))


def training_rate():
    with tempfile.TemporaryDirectory() as folder:
        call("train", *data, "--model", args.model, "--sync", "gradients", "--threads", 1, "--epochs", 1000, "--max-steps", 3 + args.steps,
             "--print-freq", 1, "--skip-eval", "--no-checkpoints", "--no-tensorboard", "--output-dir", folder)
        with open(f"{folder}/metrics.jsonl", encoding="utf-8") as file:
            steps = [r for r in map(json.loads, file) if r.get("split") == "train"][3:]
        return sum(r["images"] for r in steps) / sum(r["seconds"] for r in steps)


rates = []
for _ in range(args.rounds):
    io, compute, training = io_rate(), compute_rate(), training_rate()
    rates.append((io, compute, training, training * (1 / io + 1 / compute)))
    print("io {:.0f}, compute {:.0f}, training {:.0f} images/s: {:.3f}".format(*rates[-1]), flush=True)
io, compute, training, ratio = (statistics.median(r[i] for r in rates) for i in range(4))
lowest, highest = min(r[3] for r in rates), max(r[3] for r in rates)
with open("/proc/cpuinfo", encoding="utf-8") as file:
    cpu = re.search(r"model name\s*: (.*)", file.read()).group(1)
print(f"| {datetime.date.today()} | {args.model}, {args.size} px, random resized crops of JPEG files | {io:.0f} | {compute:.0f} | {training:.0f} | "
      f"{ratio:.2f} ({lowest:.2f} to {highest:.2f}) | {args.rounds} | {os.cpu_count()} x {cpu} | `bench/pipeline.py` |")
