#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What --recompute spares and costs: activations and CPU time of a step, with it off and on by turns. Prints lines for bench/results.md.

    bench/recompute.py [--convoy PROGRAM] [--rounds N] [--steps N] [CASE ...]     CASE: MODEL[-small]:BATCH, e.g. resnet50:16"""
import argparse
import datetime
import re
import statistics
import subprocess
import sys

from machine import MACHINE


def measure(convoy, case, steps, recompute):
    """CPU seconds of a step, which other programs disturb less than its time, MB of activations, blocks that run twice, percent of arithmetic."""
    model, batch = case.split(":")
    words = ["--model", model.removesuffix("-small"), "--batch-size", batch, "--device", "cpu", "--steps", str(steps), "--warmup-steps", "1"]
    if model.endswith("-small"):
        words += ["--stem", "small", "--classes", "10", "--image-size", "32"]
    done = subprocess.run([convoy, "bench", "compute", *words, "--recompute", recompute], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{words}: {done.stdout}{done.stderr}")
    text = done.stdout + done.stderr
    said = re.search(r"(\d+) of \d+ blocks? run forward twice.* (\d+) % more", text)
    return (int(batch) / float(re.search(r"per core: ([\d.]+) images/s", text)[1]), float(re.search(r"activations: ([\d.]+) MB", text)[1]),
            *((said[1], said[2]) if said else ("0", "0")))


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--convoy", default="build/release/src/cli/convoy")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("cases", nargs="*", default=["resnet50:16", "resnet18-small:64"])
arguments = parser.parse_args()
for one in arguments.cases:
    rounds = [[measure(arguments.convoy, one, arguments.steps, way) for way in ("off", "all")] for _ in range(arguments.rounds)]
    ratios = [again[0] / plain[0] for plain, again in rounds]
    off, on = rounds[0]
    print(f"| {datetime.date.today()} | {one} | {off[1]:.1f} | {on[1]:.1f} | {on[1] / off[1]:.2f} | {on[2]} | {on[3]} % | "
          f"{statistics.median(r[0][0] for r in rounds):.2f} | {statistics.median(r[1][0] for r in rounds):.2f} | {statistics.median(ratios):.2f} "
          f"({min(ratios):.2f} to {max(ratios):.2f}) | {arguments.rounds} | {MACHINE} |", flush=True)
