#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seconds from the end of the running step to a verified checkpoint in place, of a job on two ranks that SIGUSR1 stops, and from
starting it again to the beginning of its first step, with the load of the checkpoint in it. Under --sync weights each rank also saves
its own momentum, and a stop writes twice as much. *Plain*: a file of as many bytes written, flushed and read back from the same disk.
Prints lines for bench/results.md.

    bench/stop_and_go.py [ROUNDS [JOB ...]]"""
import datetime
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from machine import MACHINE

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONVOY = os.environ.get("CONVOY", str(ROOT / "build/release/src/cli/convoy"))
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1")
JOBS = {"resnet20": ["--model", "resnet20", "--sync", "gradients", "--batch-size", "32"],
        "resnet152": ["--model", "resnet152", "--sync", "gradients", "--batch-size", "1"],
        "resnet152, --sync weights": ["--model", "resnet152", "--sync", "weights", "--batch-size", "1"]}


def start(name, folder, *words):
    return subprocess.Popen(["mpirun", "--bind-to", "none", "-np", "2", CONVOY, "train", "--synthetic", "--synthetic-size", "32", "--image-size",
                             "32", "--synthetic-samples", "64", *JOBS[name], "--epochs", "1000", "--lr", "0.001", "--threads", "1",
                             "--skip-eval", "--print-freq", "1", "--no-tensorboard", "--save-every", "0", "--resume", "auto", "--output-dir", folder,
                             *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)


def read_until(job, pattern, times=1):
    """The time when its output has so many lines of a kind."""
    for line in job.stdout:
        times -= re.search(pattern, line) is not None
        if times == 0:
            return time.monotonic()
    sys.exit(f"{job.args} ended with {job.wait()} before '{pattern}'")


def plain(path, size):
    """Seconds to write so many bytes to the disk, and to read them back from it."""
    piece = os.urandom(1 << 24)
    begin = time.monotonic()
    with open(path, "wb", buffering=0) as file:
        for at in range(0, size, len(piece)):
            file.write(piece[:size - at])
        os.fsync(file.fileno())
    written = time.monotonic()
    with open(path, "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while file.readinto(buffer):
            pass
    return written - begin, time.monotonic() - written


buffer = bytearray(1 << 20)


def once(name, folder):
    job = start(name, folder)
    read_until(job, " step .* loss ", 3)
    job.send_signal(signal.SIGUSR1)
    job.stdout.read()
    if job.wait() != 75:
        sys.exit(f"stopped with {job.returncode}")
    saved = json.loads((folder / "state.json").read_text())["checkpoint"]["seconds"]
    size = sum(file.stat().st_size for file in (folder / "checkpoints").iterdir())
    written, read = plain(folder / "plain", size)
    begin = time.monotonic()
    job = start(name, folder, "--max-steps", "1", "--no-checkpoints")
    placed, loaded = read_until(job, "^rank  host"), read_until(job, "^resumed from")
    ready = read_until(job, "^device: ")
    job.stdout.read()
    job.wait()
    return saved, written, read, ready - begin, loaded - placed, size / 1e6


def main():
    rounds, names = int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2:] or list(JOBS)
    for name in names:
        found = []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory(prefix="convoy-bench-") as folder:
                found.append(once(name, pathlib.Path(folder) / "run"))
        saved, written, read, restarted, load, size = ([one[i] for one in found] for i in range(6))
        text = lambda values: f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
        print(f"| {datetime.date.today()} | {name}, {size[0]:.0f} MB | {text(saved)} | {text(written)}, {text(read)} | {text(restarted)} | {text(load)} "
              f"| {rounds} | {MACHINE} |", flush=True)


if __name__ == "__main__":
    main()
