#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seconds that a job of many ranks takes for everything except training, and of an MPI program that does nothing, on one machine.

    bench/large_job.py 2 64 256

Each rank trains a network of 300 numbers with two images a step, so nearly all time goes into starting, agreeing, averaging, saving and
ending. The ranks share the cores of the machine: a rank waits for its turn more than for a message, so the figures bound what a cluster
takes from above. Prints a table and a line for bench/results.md."""
import argparse
import datetime
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from machine import MACHINE

HERE = pathlib.Path(__file__).resolve().parent
EMPTY = '#include <mpi.h>\nint main(int c, char** v) { MPI_Init(&c, &v); MPI_Barrier(MPI_COMM_WORLD); MPI_Finalize(); return 0; }\n'
# What is printed when a part is over. The steps of one epoch end with an average each.
PARTS = [("start and agree", r"parameters$"), ("load", r"step  *1/"), ("9 averages", r"step  *10/"), ("checkpoint", r"^checkpoint of step"), ("end", None)]
SETTINGS = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1", "OMP_NUM_THREADS": "1"}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ranks", nargs="+", type=int)
    parser.add_argument("--convoy", default=str(HERE.parent / "build/release/src/cli/convoy"))
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one job")
    return parser.parse_args()


def mpirun(ranks):
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks)]


def empty_program(ranks, work, timeout):
    source, program = f"{work}/empty.c", f"{work}/empty"
    if not os.path.exists(program):
        pathlib.Path(source).write_text(EMPTY, encoding="utf-8")
        subprocess.run(["mpicc", "-O2", "-o", program, source], check=True)
    begin = time.monotonic()
    subprocess.run([*mpirun(ranks), program], check=True, timeout=timeout, env={**os.environ, **SETTINGS})
    return time.monotonic() - begin


def job(ranks, work, args):
    """Seconds of each part, and the largest memory of a rank in MB."""
    call = [*mpirun(ranks), args.convoy, "train", "--synthetic", "--synthetic-size", "4", "--synthetic-classes", "4", "--synthetic-samples",
            str(20 * ranks), "--model", "mlp", "--hidden", "4", "--batch-size", "2", "--epochs", "1", "--sync", "weights", "--threads", "1",
            "--bind", "none", "--skip-eval", "--print-freq", "1", "--no-tensorboard", "--output-dir", f"{work}/run-{ranks}"]
    begin = last = time.monotonic()
    parts, waiting, memory = {}, list(PARTS), 0.0
    with subprocess.Popen(["timeout", str(args.timeout), *call], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, **SETTINGS}) as running:
        said = ""
        for line in running.stdout:
            said += line
            if waiting[0][1] and re.search(waiting[0][1], line.rstrip()):
                now = time.monotonic()
                parts[waiting.pop(0)[0]] = now - last
                last = now
    if running.returncode != 0 or len(waiting) != 1:
        measured = ", ".join(f"{name} {value:.2f}" for name, value in parts.items())
        sys.exit(f"{' '.join(call)}\nended with {running.returncode} in '{waiting[0][0]}'; before it, in seconds: {measured}\n{said[-4000:]}")
    parts[waiting[0][0]] = time.monotonic() - last
    parts["in all"] = time.monotonic() - begin
    with open(f"{work}/run-{ranks}/metrics.jsonl", encoding="utf-8") as file:
        memory = max(map(int, re.findall(r'"peak_memory_max":(\d+)', file.read()))) / 1e6
    return parts, memory


def main():
    args = parse()
    lines = []
    with tempfile.TemporaryDirectory(prefix="convoy-large-") as work:
        for ranks in args.ranks:
            nothing = empty_program(ranks, work, args.timeout)
            parts, memory = job(ranks, work, args)
            if not lines:
                print("| ranks | " + " | ".join(parts) + " | empty MPI program | MB of a rank |\n|" + " --- |" * (len(parts) + 3))
            print(f"| {ranks} | " + " | ".join(f"{value:.2f}" for value in parts.values()) + f" | {nothing:.2f} | {memory:.0f} |", flush=True)
            lines.append(f"{ranks}: {parts['in all']:.2f} ({', '.join(f'{name} {value:.2f}' for name, value in parts.items() if name != 'in all')}), empty program {nothing:.2f}")
    print(f"\n| {datetime.date.today()} | {'; '.join(lines)} | {MACHINE} | `bench/large_job.py {' '.join(map(str, args.ranks))}` |")


if __name__ == "__main__":
    main()
