#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seconds from the end of the running step to a verified checkpoint in place, of a job on two ranks that SIGUSR1 stops, and from
starting it again to the end of its first step, for ResNet-20 and ResNet-152. Prints lines for bench/results.md.

    bench/stop_and_go.py [ROUNDS [MODEL ...]]"""
import datetime
import json
import os
import pathlib
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONVOY = os.environ.get("CONVOY", str(ROOT / "build/release/src/cli/convoy"))
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1")
MODELS = {"resnet20": ["--batch-size", "32"], "resnet152": ["--batch-size", "1"]}


def start(model, folder, *words):
    return subprocess.Popen(["mpirun", "--bind-to", "none", "-np", "2", CONVOY, "train", "--synthetic", "--synthetic-size", "32", "--image-size",
                             "32", "--synthetic-samples", "64", "--model", model, *MODELS[model], "--epochs", "1000", "--lr", "0.001", "--threads", "1",
                             "--skip-eval", "--print-freq", "1", "--no-tensorboard", "--save-every", "0", "--resume", "auto", "--output-dir", folder,
                             *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)


def read_until(job, steps):
    """The time when its output tells of so many steps."""
    seen = 0
    for line in job.stdout:
        seen += " step " in line and "loss" in line
        if seen == steps:
            return time.monotonic()
    sys.exit(f"{job.args} ended with {job.wait()} before {steps} steps")


def once(model, folder):
    job = start(model, folder)
    read_until(job, 3)
    job.send_signal(signal.SIGUSR1)
    job.stdout.read()
    if job.wait() != 75:
        sys.exit(f"stopped with {job.returncode}")
    checkpoint = json.loads((folder / "state.json").read_text())["checkpoint"]
    begin = time.monotonic()
    subprocess.run([CONVOY, "inspect", "checkpoint", folder / "checkpoints/last.h5"], check=True, stdout=subprocess.DEVNULL)
    load = time.monotonic() - begin
    begin = time.monotonic()
    job = start(model, folder, "--max-steps", "2", "--no-checkpoints")
    first = read_until(job, 1)
    second = read_until(job, 1)
    job.stdout.read()
    job.wait()
    return checkpoint["seconds"], first - begin, load, second - first


def main():
    rounds, models = int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2:] or list(MODELS)
    for model in models:
        found = []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory(prefix="convoy-bench-") as folder:
                found.append(once(model, pathlib.Path(folder) / "run"))
        saved, restarted, load, step = ([one[i] for one in found] for i in range(4))
        text = lambda values: f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
        print(f"| {datetime.date.today()} | {model} | {text(saved)} | {text(restarted)} | {text(load)} | {text(step)} | {rounds} "
              f"| {os.cpu_count()} x {platform.machine()} |", flush=True)


if __name__ == "__main__":
    main()
