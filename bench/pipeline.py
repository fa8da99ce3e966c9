#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How near training comes to the rate that its parts allow where they share the cores: 1 / (1 / io + 1 / compute).

    bench/pipeline.py ARCHIVE [--model M] [--size N] [--precision P] [--batch N] [--steps N] [--rounds N] [--copies N]

ARCHIVE: a tar file with JPEG files; COPIES of it become the data set. By turns: the loader alone, steps alone on images in memory, training
on the files, each on 2 ranks of one thread and one loader thread. io, compute and training are images per second of a core, by the seconds
that cores worked for the programs in their timed steps, so that others on the machine count little; their ratio tells what sharing adds,
waiting of threads that poll included. The same of the wall's seconds stands in brackets: it also sees cores that nobody used, and, on a
busy machine, that training with its four threads gets a larger share of the cores than its parts. Prints every round, the medians, and a
line for bench/results.md.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from compare_step import cpu_model  # noqa: E402  (the path is set above)
from prepare import make_archives  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")
WARM_UP = 3
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1")


def launch(program, *words, ranks=2):
    return ["mpirun", "--bind-to", "none", "-np", str(ranks), program, *map(str, words)]


def call(*words, **more):
    return subprocess.run(launch(*words, **more), check=True, capture_output=True, text=True, env=ENVIRONMENT).stdout


def rates(out, wall):
    """Of a benchmark's lines: images per second of a core and of the wall."""
    return tuple(float(re.search(pattern, out).group(1)) for pattern in (r"per core: ([\d.]+) images/s", wall))


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return file.read().split()


def cpu_seconds(pids):
    """Of all threads of these processes."""
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(") ")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / TICK


def steps_of(log):
    try:
        with open(log, encoding="utf-8") as file:
            lines = [line for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []
    return [r for r in map(json.loads, lines) if r.get("split") == "train"]


def train(program, words, steps):
    """The same of training, from the end of the warm-up to the last step but one, while the ranks are there."""
    with tempfile.TemporaryDirectory() as folder:
        command = launch(program, "train", *words, "--sync", "gradients", "--threads", 1, "--epochs", 1000, "--max-steps", WARM_UP + steps + 2,
                         "--print-freq", 1, "--skip-eval", "--no-checkpoints", "--no-tensorboard", "--output-dir", folder)
        with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
            marks = []
            for wanted in (WARM_UP, WARM_UP + steps):
                while len(done := steps_of(f"{folder}/metrics.jsonl")) < wanted and run.poll() is None:
                    time.sleep(0.01)
                if run.poll() is not None:
                    sys.exit(f"training ended early: {run.stderr.read()}")
                marks.append((len(done), cpu_seconds(children(run.pid))))
            run.wait()
        (first, before), (last, after) = marks
        timed = steps_of(f"{folder}/metrics.jsonl")[first:last]
        images = sum(r["images"] for r in timed)
        waits = sum(r["data_time"] for r in timed) / len(timed) / (sum(r["seconds"] for r in timed) / len(timed))
        return images / (after - before), images / sum(r["seconds"] for r in timed), waits


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive")
    parser.add_argument("--model", default="alexnet")
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--copies", type=int, default=6)
    parser.add_argument("--build", default=str(ROOT / "build/release"))
    args = parser.parse_args()
    convoy, preprocess = f"{args.build}/src/cli/convoy", f"{args.build}/preprocess/convoy-preprocess"
    with tempfile.TemporaryDirectory(prefix="convoy-bench-") as work:
        os.mkdir(f"{work}/archives")
        make_archives(args.archive, f"{work}/archives", args.copies)
        call(preprocess, "folder", "--train", f"{work}/archives", "--encoding", "jpeg", "--partitions", 2, "--out", f"{work}/data")
        data = ("--data", f"{work}/data", "--augment", "imagenet", "--image-size", args.size, "--workers", 1, "--batch-size", args.batch)
        network = ("--model", args.model, "--precision", args.precision)
        rounds = []
        for _ in range(args.rounds):
            io = rates(call(convoy, "bench", "io", *data, "--steps", args.steps), r"prepare batches: .*?([\d.]+) images/s")
            compute = rates(call(convoy, "bench", "compute", *network, "--image-size", args.size, "--batch-size", args.batch, "--classes",
                                 args.copies, "--steps", args.steps, "--warmup-steps", WARM_UP, "--threads", 1), r"images/s: ([\d.]+) in all")
            *training, waits = train(convoy, (*data, *network), args.steps)
            ratio = [t * (1 / i + 1 / c) for i, c, t in zip(io, compute, training)]
            rounds.append((*io, *compute, *training, *ratio, waits))
            print("per core (wall): io {:.0f} ({:.0f}), compute {:.1f} ({:.1f}), training {:.1f} ({:.1f}) images/s, ratio {:.3f} ({:.3f}), "
                  "waits for data {:.1%} of the time".format(*rounds[-1]), flush=True)
    columns = list(zip(*rounds))
    io, io_wall, compute, compute_wall, training, training_wall, ratio, ratio_wall, waits = map(statistics.median, columns)
    print(f"| {datetime.date.today()} | {args.model} {args.precision}, {args.size} px, batch 2 x {args.batch} | {io:.0f} ({io_wall:.0f}) | "
          f"{compute:.1f} ({compute_wall:.1f}) | {training:.1f} ({training_wall:.1f}) | {ratio:.2f}, {min(columns[6]):.2f} to "
          f"{max(columns[6]):.2f} ({ratio_wall:.2f}, {min(columns[7]):.2f} to {max(columns[7]):.2f}) | {waits * 100:.1f} % | {args.rounds} | "
          f"{cpu_model()} | `bench/pipeline.py` |")


if __name__ == "__main__":
    main()
