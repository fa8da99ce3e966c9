#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains one configuration with several seeds, in several modes by turns, and prints lines for results.md.

    bench/accuracy.py --data DIR --runs WORK configs/cifar10_resnet20_10ep.cfg
    bench/accuracy.py --data DIR --runs WORK configs/cifar10_resnet20_10ep.cfg --epochs 5 --modes gradients gradients-bf16

Modes: `-bf16` and `-fp16` after `gradients` and `local` are the format of messages (--wire); `precision-bf16` trains in bf16, and `winograd-bf16`
also with --kernels winograd-bf16. DIR is what `convoy-preprocess cifar10` wrote. A run that WORK already holds complete is not repeated, and one that was cut off goes on
from its newest checkpoint. Logs go to bench/logs.
"""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SYNC = {"gradients": ["--sync", "gradients"], "local": ["--sync", "weights", "--local-steps", "10"]}
MODES = {**SYNC, **{f"{name}-{wire}": [*words, "--wire", wire] for name, words in SYNC.items() for wire in ("bf16", "fp16")},
         "precision-bf16": [*SYNC["gradients"], "--precision", "bf16"],
         "winograd-bf16": [*SYNC["gradients"], "--precision", "bf16", "--kernels", "winograd-bf16"]}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--data", required=True)
    parser.add_argument("--runs", required=True, help="folder for the runs")
    parser.add_argument("--convoy", default=str(HERE.parent / "build/release/src/cli/convoy"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--epochs", type=int, help="instead of the configuration's")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(SYNC))
    return parser.parse_args()


def final_top1(folder):
    """Top-1 of the last validation, percent; None where the run isn't complete."""
    log = folder / "metrics.jsonl"
    if not log.exists():
        return None
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    if not any(r["split"] == "run" and r.get("event") == "end" and r.get("result") == "finished" for r in lines):
        return None
    return [r["top1"] for r in lines if r["split"] == "val"][-1]


def run(args, mode, seed):
    length = [] if args.epochs is None else ["--epochs", str(args.epochs)]
    folder = pathlib.Path(args.runs) / f"{mode}-{seed}{'' if args.epochs is None else f'-{args.epochs}ep'}"
    if final_top1(folder) is None:
        call = ["mpirun", "--bind-to", "none", "-np", str(args.ranks), args.convoy, "train", "--config", args.config, "--data",
                args.data, "--seed", str(seed), *MODES[mode], *length, "--print-freq", "98", "--no-tensorboard", "--resume", "auto",
                "--output-dir", str(folder)]
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        if subprocess.run(call, env=environment, check=False).returncode != 0:
            sys.exit(f"{' '.join(call)} failed")
    logs = HERE / "logs"
    logs.mkdir(exist_ok=True)
    shutil.copy(folder / "log.txt", logs / f"{pathlib.Path(args.config).stem}-{folder.name}.txt")
    return final_top1(folder)


def main():
    args = parse()
    found = {mode: [] for mode in args.modes}
    for seed in range(1, args.seeds + 1):
        for mode in args.modes:
            found[mode].append(run(args, mode, seed))
    machine = next(line.split(": ")[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if line.startswith("model name"))
    for mode, values in found.items():
        each = ", ".join(f"{v:.2f}" for v in values)
        own = next(line.split("=")[1].strip() for line in open(args.config, encoding="utf-8") if line.startswith("epochs"))
        epochs = args.epochs or own
        print(f"| {datetime.date.today()} | {pathlib.Path(args.config).stem} {' '.join(MODES[mode])}, {args.ranks} ranks | "
              f"{pathlib.Path(args.data).name} | {epochs} | {args.seeds} | {statistics.mean(values):.2f} ({each}) | | "
              f"{os.cpu_count()} x {machine} | `bench/accuracy.py {args.config}` |")


if __name__ == "__main__":
    main()
