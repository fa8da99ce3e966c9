#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a way to average costs in accuracy and saves in traffic: ResNet-20 on CIFAR-10, 15 epochs, global batch 256, 3 seeds per cell.

    bench/sync_table.py --data DIR --runs WORK --minutes 60      # goes on where the last call stopped, for an hour
    bench/sync_table.py                                          # prints the table of what is finished

DIR is what `convoy-preprocess cifar10` wrote. Finished runs are lines of bench/sync_table.csv and are not repeated, wherever WORK is; a run
that was stopped goes on from its checkpoint in WORK. The first seed of all cells comes first, so the table is of use early.

Which 16 of the many cells, and why:
- gradients in fp32 are what the others are compared with, on 4 and on 16 replicas: 16 replicas see 16 images each, so their batch norms differ.
- H = 16 and 64 with momentum kept, the default.
- At H = 16: each of the two outer optimizers; slow momentum of 0.7, and with the local momentum averaged; post-local SGD (every step averages in the
  first half); and slow momentum after a first fifth in which every step averages. The choice among them matters more than that of a neighbouring H.
- The wire with gradients, each format and compressor once: an error of a format shows most where every step sends.
- 16 replicas with a kept momentum, which they strain most.
- Slow momentum if the replicas of a host average after every step (two hosts of two replicas; a rank stands for a host).
"""
import argparse
import csv
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from accuracy import final_top1
from machine import MACHINE

HERE = pathlib.Path(__file__).resolve().parent
GLOBAL_BATCH, EPOCHS = 256, 15
GRADIENTS = ["--sync", "gradients"]


def local(steps, *words):
    return ["--sync", "weights", "--local-steps", str(steps), *words]


SLOWMO = ["--outer-optimizer", "momentum", "--outer-lr", "1", "--outer-momentum", "0.5"]
DILOCO = ["--outer-optimizer", "nesterov", "--outer-lr", "0.7", "--outer-momentum", "0.9"]
CELLS = {  # name: replicas, options
    "gradients-4": (4, GRADIENTS),
    "h16-keep-4": (4, local(16)),
    "gradients-bf16-4": (4, [*GRADIENTS, "--wire", "bf16"]),
    "h16-slowmo-4": (4, local(16, *SLOWMO)),
    "h16-postlocal-4": (4, local(16, "--local-sgd-start", "1470")),  # half of the run averages after every step
    "gradients-16": (16, GRADIENTS),
    "h16-keep-16": (16, local(16)),
    "h16-slowmo-average-4": (4, local(16, *SLOWMO, "--local-momentum", "average")),
    "h16-diloco-4": (4, local(16, *DILOCO)),
    "gradients-powersgd-4": (4, [*GRADIENTS, "--wire", "powersgd"]),
    "h16-slowmo7-4": (4, local(16, *SLOWMO[:-1], "0.7")),
    "h64-keep-4": (4, local(64)),
    "gradients-2bit-4": (4, [*GRADIENTS, "--wire", "2bit"]),
    "gradients-topk-4": (4, [*GRADIENTS, "--wire", "topk"]),
    "h16-node1-slowmo-4": (4, local(16, *SLOWMO, "--node-steps", "1", "--node-replicas", "2")),
    "h16-postslowmo-4": (4, local(16, *SLOWMO, "--local-sgd-start", "588")),  # the outer optimizer after a fifth of the run
}
FIELDS = ["cell", "seed", "epochs", "top1", "loss", "sent_mb_per_epoch", "seconds", "date", "machine"]
STOPPED = 75  # convoy's exit code where it has saved a checkpoint and would go on
LEAST_SECONDS = 60  # for less a run isn't begun


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="train; without it the table is printed, and no more")
    parser.add_argument("--runs", help="folder for runs that are not finished; needed with --data")
    parser.add_argument("--minutes", type=float, help="stop, with checkpoints, after this time")
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--csv", default=str(HERE / "sync_table.csv"))
    parser.add_argument("--convoy", default=str(HERE.parent / "build/release/src/cli/convoy"))
    args = parser.parse_args()
    if args.data and not args.runs:
        parser.error("--data needs --runs, a folder for the runs")
    return args


def words_of(cell):
    replicas, words = CELLS[cell]
    return ["--replicas", str(replicas), "--batch-size", str(GLOBAL_BATCH // replicas), *words]


def read(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def append(path, row):
    """A line at a time, whole: a call that is killed loses none."""
    begin = "" if os.path.exists(path) else ",".join(FIELDS) + "\n"
    with open(path, "a", encoding="utf-8", newline="") as file:
        file.write(begin)
        csv.DictWriter(file, FIELDS, lineterminator="\n").writerow(row)
        file.flush()
        os.fsync(file.fileno())


def row_of(cell, seed, epochs, folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    # An epoch that two jobs trained has one record, of the job that ended it.
    by_epoch = {record["epoch"]: record for record in lines if record["split"] == "epoch"}
    loss = [record["loss"] for record in lines if record["split"] == "val"][-1]
    # If a stop interrupted an epoch, its record lacks what the first job sent.
    resumed = [record["step"] for record in lines if record["split"] == "run" and record["event"] == "resume"]
    begin = lambda epoch: by_epoch[epoch - 1]["step"] if epoch - 1 in by_epoch else 0
    whole = [record for epoch, record in by_epoch.items() if not any(begin(epoch) < step < record["step"] for step in resumed)]
    sent = statistics.mean(record["sent_bytes"] for record in whole or by_epoch.values()) / 1e6
    return {"cell": cell, "seed": seed, "epochs": epochs, "top1": f"{final_top1(folder):.2f}", "loss": f"{loss:.4f}",
            "sent_mb_per_epoch": f"{sent:.2f}", "seconds": f"{sum(record['seconds'] for record in by_epoch.values()):.0f}",
            "date": datetime.date.today().isoformat(), "machine": MACHINE.split(",")[0]}


def train(args, cell, seed, folder, deadline):
    """Returns False if the time is up."""
    call = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(args.ranks), args.convoy, "train", "--config",
            str(HERE.parent / "configs/cifar10_resnet20_10ep.cfg"), "--data", args.data, "--seed", str(seed), "--epochs", str(args.epochs),
            *words_of(cell), "--threads", "1", "--print-freq", "98", "--no-tensorboard", "--resume", "auto", "--output-dir", str(folder)]
    if deadline is not None:
        left = deadline - time.monotonic()
        if left < LEAST_SECONDS:
            return False
        call += ["--time-limit", f"{left:.0f}"]
    print(f"{cell}, seed {seed}", flush=True)
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    code = subprocess.run(call, env=environment, check=False).returncode
    if code == STOPPED:
        return False
    if code != 0:
        sys.exit(f"{' '.join(call)}\nended with {code}; the table goes on from here when it is called again")
    return True


def run_all(args):
    deadline = None if args.minutes is None else time.monotonic() + 60 * args.minutes
    for seed in range(1, args.seeds + 1):
        for cell in args.cells:
            done = {(row["cell"], row["seed"], row["epochs"]) for row in read(args.csv)}
            if (cell, str(seed), str(args.epochs)) in done:
                continue
            folder = pathlib.Path(args.runs) / f"{cell}-{args.epochs}ep-{seed}"
            if final_top1(folder) is None and not train(args, cell, seed, folder, deadline):
                return
            append(args.csv, row_of(cell, seed, args.epochs, folder))


def table(rows, epochs):
    """Markdown. Points are against gradients in fp32 on as many replicas, over the seeds that both have."""
    found = {cell: {row["seed"]: row for row in rows if row["cell"] == cell and row["epochs"] == str(epochs)} for cell in CELLS}
    lines = [f"| replicas | options, {epochs} epochs | top-1 % (seeds) | points against fp32 gradients | MB sent per epoch | seconds |", "| --- | --- | --- | --- | --- | --- |"]
    for cell, (replicas, words) in CELLS.items():
        own, base = found[cell], found[f"gradients-{replicas}"]
        if not own:
            lines.append(f"| {replicas} | `{' '.join(words)}` | not yet | | | |")
            continue
        value = lambda row: float(row["top1"])
        each = ", ".join(row["top1"] for _, row in sorted(own.items()))
        both = sorted(own.keys() & base.keys())
        points = f"{statistics.mean(value(own[seed]) - value(base[seed]) for seed in both):+.2f}" if both else ""
        sent = statistics.mean(float(row["sent_mb_per_epoch"]) for row in own.values())
        seconds = statistics.mean(float(row["seconds"]) for row in own.values())
        lines.append(f"| {replicas} | `{' '.join(words)}` | {statistics.mean(map(value, own.values())):.2f} ({each}) | {points} | {sent:.1f} | {seconds:.0f} |")
    return "\n".join(lines)


def main():
    args = parse()
    if args.data:
        run_all(args)
    rows = read(args.csv)
    print(table(rows, args.epochs))
    left = len(args.cells) * args.seeds - sum(row["cell"] in args.cells and row["epochs"] == str(args.epochs) and int(row["seed"]) <= args.seeds for row in rows)
    print(f"\n{left} runs left" if left else "\nall runs are finished")


if __name__ == "__main__":
    main()
