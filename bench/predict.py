#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicts a step of four ranks on this machine from what one and two ranks measured, then measures it; a line for results.md.

    bench/predict.py [--model resnet20] [--batch 64] [--rounds 3] [--steps 12]

Every round measures anew: sums of two ranks (bench comm), steps without sums of one and of two ranks (bench compute --no-gradients), each
rank with one thread, and then steps of 1, 2 and 4 ranks with their gradients summed. If four ranks share two cores, the prediction takes them to
need twice as long as two; it says so.
"""
import argparse
import csv
import datetime
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from machine import MACHINE  # noqa: E402  (the path is set above)


def convoy(args, ranks, *words):
    call = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), args.convoy, *map(str, words)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "OMPI_MCA_mpi_yield_when_idle": "1"}
    done = subprocess.run(call, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(call)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--convoy", default=str(HERE.parent / "build/release/src/cli/convoy"))
    parser.add_argument("--model", default="resnet20")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    args = parser.parse_args()
    job = ["--model", args.model, "--batch-size", args.batch, "--threads", 1]
    found = {ranks: [] for ranks in (1, 2, 4)}
    for number in range(args.rounds):
        with tempfile.TemporaryDirectory() as work:
            machine, table = f"{work}/machine.json", f"{work}/table.csv"
            convoy(args, 2, "bench", "comm", "--machine", machine, "--steps", args.steps)
            for ranks in (1, 2):
                convoy(args, ranks, "bench", "compute", "--no-gradients", "--machine", machine, *job, "--steps", args.steps)
            for ranks, rows in found.items():
                convoy(args, 1, "predict-scale", "--machine", machine, *job, "--sync", "gradients", "--nodes", 1, "--ranks-per-node", ranks,
                       "--csv", table)
                with open(table, encoding="utf-8") as file:
                    row = next(csv.DictReader(file))
                said = convoy(args, ranks, "bench", "compute", *job, "--steps", args.steps)
                measured = float(re.search(r"step: mean ([0-9.]+) ms", said)[1])
                rows.append((float(row["step_ms"]), float(row["low_ms"]), float(row["high_ms"]), measured))
                print(f"round {number + 1}, {ranks} ranks: predicted {row['step_ms']} ms ({row['low_ms']} to {row['high_ms']}), measured {measured:.2f} ms",
                      flush=True)
    for ranks, rows in found.items():
        off = [100 * (predicted / measured - 1) for predicted, _, _, measured in rows]
        inside = sum(low <= measured <= high for _, low, high, measured in rows)
        print(f"| {datetime.date.today()} | {args.model}, batch {args.batch}, {ranks} ranks | {statistics.median(r[0] for r in rows):.1f} "
              f"| {statistics.median(r[3] for r in rows):.1f} | {statistics.median(off):+.1f} ({min(off):+.1f} to {max(off):+.1f}) "
              f"| {inside} of {len(rows)} | {MACHINE} |")


if __name__ == "__main__":
    main()
