#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of `convoy bench compute` and of PyTorch by turns on one machine; medians, ratios, and lines for results.md.

    bench/compare_step.py --python /path/to/python-with-torch --rounds 5 resnet20:fp32:128x2 resnet50:bf16:32

A case is MODEL:PRECISION:BATCH or MODEL:PRECISION:BATCHxPROCESSES; models: those of OURS. The peer runs channels_last, eager and compiled; the
ratio is against the better of its medians.
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

HERE = pathlib.Path(__file__).resolve().parent
OURS = {"resnet20": ["--model", "resnet20"], "resnet18-small": ["--model", "resnet18", "--stem", "small", "--classes", "10"],
        **{name: ["--model", name] for name in ("resnet50", "airbench94", "mobilenet_v2", "resnext50_32x4d", "efficientnet_b0")}}
STEPS = {"resnet20": 12, "resnet18-small": 6}  # about 1500 images; of other models 4 steps
RATE, CPU_RATE = r"images/s: ([0-9.]+) in all", r"per core: ([0-9.]+) images/s"  # in what `bench compute` prints
STANDARD = ["resnet50:fp32:32", "resnet50:bf16:32", "resnet18-small:fp32:128", "resnet18-small:bf16:128",
            "resnet20:fp32:128x2", "resnet20:bf16:128x2"]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=STANDARD, metavar="CASE")
    parser.add_argument("--python", required=True, help="interpreter with PyTorch")
    parser.add_argument("--convoy", default=str(HERE.parent / "build/release/src/cli/convoy"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=0, help="timed steps of a round; 0: about 1500 images of resnet20, "
                                                             "fewer of larger networks")
    parser.add_argument("--no-compile", action="store_true", help="leave out torch.compile (a minute to start)")
    parser.add_argument("--cpu-time", action="store_true", help="one thread each, images per second of its CPU time: for a machine that "
                                                              "others use")
    parser.add_argument("--kernels", default="", help="passed on to convoy")
    return parser.parse_args()


def output_of(call, environment=None):
    done = subprocess.run(call, capture_output=True, text=True, env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        sys.exit(f"{' '.join(call)} failed with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def run_ours(args, model, precision, batch, processes, steps):
    environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    threads = 1 if args.cpu_time else max(1, len(os.sched_getaffinity(0)) // processes)
    call = ["mpirun", "--bind-to", "none", "-np", str(processes), args.convoy, "bench", "compute", *OURS[model],
            "--precision", precision, "--batch-size", str(batch), "--steps", str(steps), "--threads", str(threads)]
    if args.kernels:
        call += ["--kernels", args.kernels]
    text = output_of(call, environment)
    found = re.search(CPU_RATE if args.cpu_time else RATE, text)
    if found is None:
        sys.exit(f"{' '.join(call)} printed no rate:\n{text}")
    return float(found.group(1)), " ".join(["convoy", *call[6:]])


def run_peer(args, model, precision, batch, processes, steps, compiled):
    call = [args.python, str(HERE / "peer/step_torch.py"), "--model", model, "--precision", precision, "--batch-size",
            str(batch), "--processes", str(processes), "--steps", str(steps)] + (["--compile"] if compiled else [])
    if args.cpu_time:
        call += ["--threads", "1", "--warmup", "1"]
    # Warnings of the compiler may follow the line of JSON.
    answer = json.loads([line for line in output_of(call).splitlines() if line.startswith("{")][-1])
    return answer["images_per_cpu_second" if args.cpu_time else "images_per_second"], answer["torch"]


def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            flags = "AVX-512" if "avx512f" in pathlib.Path("/proc/cpuinfo").read_text() else "no AVX-512"
            return f"{len(os.sched_getaffinity(0))} x {line.split(':')[1].strip()}, {flags}"
    return "unknown CPU"


def compare(args, case):
    model, precision, size = case.split(":")
    batch, processes = (int(n) for n in size.split("x")) if "x" in size else (int(size), 1)
    steps = args.steps or STEPS.get(model, 4)
    variants = ["eager"] + ([] if args.no_compile else ["compiled"])
    ours, peer, command, version = [], {v: [] for v in variants}, "", ""
    for _ in range(args.rounds):
        rate, command = run_ours(args, model, precision, batch, processes, steps)
        ours.append(rate)
        for variant in variants:
            rate, version = run_peer(args, model, precision, batch, processes, steps, variant == "compiled")
            peer[variant].append(rate)
    medians = {v: statistics.median(rates) for v, rates in peer.items()}
    best = max(medians, key=medians.get)
    median = statistics.median(ours)
    spread = f"{min(ours):.1f} to {max(ours):.1f}"
    print(f"| {datetime.date.today()} | {case} | {median:.1f} ({spread}) | "
          + ", ".join(f"{v} {m:.1f}" for v, m in medians.items())
          + f" (PyTorch {version}) | {median / medians[best]:.2f} | {args.rounds} | {cpu_model()}"
          + (", by CPU time" if args.cpu_time else "") + f" | `{command}` |", flush=True)


def main():
    args = parse()
    print("| date | case | ours, images/s: median (range) | peer, images/s: medians | ratio to its best | rounds | machine | command |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for case in args.cases:
        compare(args, case)


if __name__ == "__main__":
    main()
