#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a training step should take on a described GPU, from the program's own table: each step takes the time of its bytes or of its
arithmetic, whichever is longer, and each kernel of the row adds a gap. Those that run beside the row (`beside`) add their work and no gap: work
does not overlap, since each kernel is taken to use the whole card. It is a guess until it is measured:
`convoy bench compute --device cuda --profile` measures the same steps.

    bench/gpu_model.py [--card tests/cuda/plan/cards/h100.json] [--model resnet50] [--batch-size 256] [--precision fp16] [OPTION of inspect plan ...]
    convoy inspect plan --device cuda ... | bench/gpu_model.py --table - --batch-size 256

Three sets of shares, which no card has confirmed: of the peak bandwidth, of the peak rate in forward, data and weight gradients, microseconds
from the end of a kernel to the start of the next, and kernels in a cuDNN graph. `optimistic` is what good kernels reach elsewhere, `likely` what
cuDNN and passes over memory usually do. Left out: NCCL, the L2 cache (which helps small layers), and a stem of 4 channels, which cuDNN may
compute far below the rate. CONVOY names the program; default build/release/src/cli/convoy. The lines with `|` are for bench/results.md."""
import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# bandwidth, rate of forward, data gradient, weight gradient, gap in microseconds, kernels per graph
SHARES = {"optimistic": (0.90, 0.61, 0.61, 0.56, 1.5, 1.5), "likely": (0.85, 0.485, 0.425, 0.405, 2.2, 1.7),
          "pessimistic": (0.78, 0.35, 0.28, 0.28, 3.0, 2.0)}
# NVIDIA's data sheets: FLOP of a multiprocessor in a clock (dense), and bits of the memory's bus, which descriptions lack.
FLOP_PER_CLOCK = {90: {"fp16": 4096, "bf16": 4096, "tf32": 2048, "fp32": 256}, 80: {"fp16": 2048, "bf16": 2048, "tf32": 1024, "fp32": 128}}
BUS_BITS = {"H200": 6144}
USUAL_BUS_BITS = 5120
BOOST = {90: 0.92, 80: 1.0}  # the clock under load, of the description's maximum: 989 TFLOP/s are 1,830 MHz of 1,980
UPDATE = {"kernels": 3, "bytes": 26}  # delivery of the step's numbers, decide, update; of a weight: w, dw, momentum
LINE = re.compile(r"^ *\d+ (forward|backward|beside) +(\S.*?) +(\d+\.\d+) +(\d+\.\d+) +(\d+\.\d+) (.*)$")


def card_of(path):
    card = json.loads(pathlib.Path(path).read_text())
    sm = card["deviceVer"] // 10
    bits = next((bits for name, bits in BUS_BITS.items() if name in card["deviceName"]), USUAL_BUS_BITS)
    return {"name": card["deviceName"], "sm": sm, "bandwidth": card["memClockRateKHz"] * 1e3 * 2 * bits / 8,
            "clocks": card["multiProcessorCount"] * card["smClockRateKHz"] * 1e3 * BOOST[sm]}


def steps_of(table):
    """(name, MB an image, GFLOP an image, MB of weights, is a graph, runs beside others)"""
    found = []
    for line in table.splitlines():
        if match := LINE.match(line):
            found.append((match[2].strip(), float(match[3]), float(match[4]), float(match[5]), "workspace" in match[6], match[1] == "beside"))
    return found


def model(steps, batch, card, precision, share):
    bandwidth, forward, data, weight, gap, kernels_a_graph = SHARES[share]
    rate = card["clocks"] * FLOP_PER_CLOCK[card["sm"]][precision]
    seconds, kernels, groups = 0.0, 0.0, {}
    weights = 0.0
    for name, mb, gflop, mb_weights, is_graph, is_beside in steps:
        of_bytes = (mb * batch + mb_weights) * 1e6 / (card["bandwidth"] * bandwidth)
        part = {"forward": forward, "data gr": data, "weight ": weight}.get(name[:7], forward)
        own = max(of_bytes, gflop * batch * 1e9 / (rate * part))
        seconds += own
        if not is_beside:
            kernels += kernels_a_graph if is_graph else 1
        group = groups.setdefault(name, [0, 0.0, 0.0])
        group[0], group[1], group[2] = group[0] + 1, group[1] + mb * batch / 1e3, group[2] + own
        weights += mb_weights if is_graph and name.startswith("forward") else 0
    parameters = weights * 1e6 / {"fp16": 2, "bf16": 2}.get(precision, 4)
    seconds += parameters * UPDATE["bytes"] / (card["bandwidth"] * bandwidth)
    kernels += UPDATE["kernels"]
    return seconds, kernels, kernels * gap * 1e-6, groups


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--card", default=str(ROOT / "tests/cuda/plan/cards/h100.json"))
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--precision", default="fp16", choices=["fp16", "bf16", "tf32", "fp32"])
    parser.add_argument("--table", help="what inspect plan printed; -: standard input")
    own, rest = parser.parse_known_args()
    card = card_of(own.card)
    if own.table:
        table = sys.stdin.read() if own.table == "-" else pathlib.Path(own.table).read_text()
    else:
        convoy = os.environ.get("CONVOY", str(ROOT / "build/release/src/cli/convoy"))
        words = [convoy, "inspect", "plan", "--card", own.card, "--model", own.model, "--batch-size", str(own.batch_size), "--precision", own.precision]
        table = subprocess.run(words + rest, check=True, capture_output=True, text=True).stdout
    steps = steps_of(table)
    if not steps:
        sys.exit("no steps in the table (a line of `convoy inspect plan` has a stage, a pass, a step and three numbers)")
    graphs, beside = sum(step[4] for step in steps), sum(step[5] for step in steps)
    print(f"{card['name']}: {card['bandwidth'] / 1e12:.2f} TB/s, {card['clocks'] * FLOP_PER_CLOCK[card['sm']][own.precision] / 1e12:.0f} TFLOP/s in {own.precision}")
    groups = model(steps, own.batch_size, card, own.precision, "likely")[3]
    print(f"{'step':<34} {'times':>5} {'GB':>8} {'ms, likely':>10}")
    for name, (times, gb, seconds) in sorted(groups.items(), key=lambda item: -item[1][2]):
        print(f"{name:<34} {times:>5} {gb:>8.2f} {seconds * 1e3:>10.3f}")
    moved = sum(step[1] for step in steps)
    results = []
    for share in SHARES:
        seconds, kernels, gaps, _ = model(steps, own.batch_size, card, own.precision, share)
        results.append((seconds + gaps) * 1e3)
        print(f"{share}: {seconds * 1e3:.2f} ms of work, {kernels:.0f} kernels in a row with {gaps * 1e3:.2f} ms between them: "
              f"{(seconds + gaps) * 1e3:.2f} ms, {own.batch_size / (seconds + gaps):,.0f} images/s")
    print(f"| {datetime.date.today()} | {own.model} {own.precision}, batch {own.batch_size} | {card['name']} | {graphs} ({beside} beside) + {len(steps) - graphs} + "
          f"{UPDATE['kernels']} | {moved:.2f} | {results[1]:.2f} ({results[0]:.2f} to {results[2]:.2f}) | {own.batch_size / results[1] * 1e3:,.0f} |")


main()
