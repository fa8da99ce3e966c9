# SPDX-License-Identifier: Apache-2.0
"""bench/sync_table.py: its bookkeeping, with a program in convoy's place that takes no time, and the options of its cells with convoy.
Usage: sync_table_test.py bookkeeping|options"""
import csv
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from runner import SOURCE, check, run, work_folder  # noqa: E402  (the path is set above)

SCRIPT = f"{SOURCE}/bench/sync_table.py"
# Writes what a run leaves, in two jobs: the first stops after an epoch where a file says so.
STUB = """#!/usr/bin/env python3
import json, os, sys
words = sys.argv
value = lambda name: words[words.index(name) + 1]
if os.environ.get("OMPI_COMM_WORLD_RANK", "0") != "0":
    sys.exit(0)
folder = value("--output-dir")
os.makedirs(folder, exist_ok=True)
with open(os.path.join(os.path.dirname(folder), "calls"), "a") as file:
    file.write(" ".join(words) + "\\n")
breaks = os.path.join(os.path.dirname(folder), "breaks")
begun = os.path.exists(folder + "/metrics.jsonl")
if os.path.exists(breaks) and not begun:
    kind = open(breaks).read()
    if kind == "fails":
        sys.exit(3)
with open(folder + "/metrics.jsonl", "a") as file:
    say = lambda **record: print(json.dumps(record), file=file)
    sent = 3000000 if "gradients" in words else 1000000
    if begun:  # in the middle of epoch 2
        say(split="run", event="resume", step=15)
        say(split="epoch", epoch=2, step=20, seconds=10, sent_bytes=sent / 2)
    else:
        say(split="run", event="start", step=0)
        say(split="epoch", epoch=1, step=10, seconds=10, sent_bytes=sent)
    if os.path.exists(breaks) and not begun:
        say(split="run", event="end", result="stopped")
        sys.exit(75)
    if not begun:
        say(split="epoch", epoch=2, step=20, seconds=10, sent_bytes=sent)
    say(split="val", loss=0.5, top1=80 + int(value("--seed")) - (0 if "gradients" in words else 1.5))
    say(split="run", event="end", result="finished")
"""


def call(*words, expect=0):
    done = subprocess.run([sys.executable, SCRIPT, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != expect:
        sys.exit(f"ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout, done.stderr


def rows(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def bookkeeping(work):
    stub, runs, table = f"{work}/stub", f"{work}/runs", f"{work}/table.csv"
    with open(stub, "w", encoding="utf-8") as file:
        file.write(STUB)
    os.chmod(stub, 0o755)
    os.mkdir(runs)
    job = ["--data", "nowhere", "--runs", runs, "--csv", table, "--convoy", stub, "--epochs", 2, "--seeds", 2, "--ranks", 1,
           "--cells", "gradients-4", "h16-keep-4"]

    out, _ = call("--csv", table, "--epochs", 2)
    check("not yet" in out and "48 runs left" in out, "nothing is finished yet")
    out, _ = call(*job, "--minutes", 0.5)
    check(not os.path.exists(table) and "4 runs left" in out, "no run is begun in the last minute")

    with open(f"{runs}/breaks", "w", encoding="utf-8") as file:
        file.write("stops")
    out, _ = call(*job, "--minutes", 600)
    check(not os.path.exists(table) and "4 runs left" in out, "a run that was stopped is no line of the table, and ends the call")
    with open(f"{runs}/calls", encoding="utf-8") as file:
        said = file.read()
    limit = int(said.split("--time-limit ")[1].split()[0])
    check(0 < limit <= 600 * 60, "the run knows how much time is left")
    check("--replicas 4 --batch-size 64" in said and "--resume auto" in said, "global batch 256")

    with open(f"{runs}/breaks", "w", encoding="utf-8") as file:
        file.write("fails")
    _, err = call(*job, expect=1)
    check("ended with 3" in err and len(rows(table)) == 1, "a failure is told; what is finished before stays")
    os.remove(f"{runs}/breaks")
    out, _ = call(*job)
    found = rows(table)
    check([(row["cell"], row["seed"]) for row in found] == [("gradients-4", "1"), ("h16-keep-4", "1"), ("gradients-4", "2"), ("h16-keep-4", "2")],
          "the first seed of all cells comes first")
    check(found[0]["top1"] == "81.00" and found[0]["seconds"] == "20" and found[0]["sent_mb_per_epoch"] == "3.00",
          "a run in two jobs is counted once, epoch by epoch, and its bytes where one job sent all")
    check("| 4 | `--sync weights --local-steps 16` | 80.00 (79.50, 80.50) | -1.50 | 1.0 | 20 |" in out and "all runs are finished" in out, "the table")
    with open(f"{runs}/calls", encoding="utf-8") as file:
        before = file.read()
    call(*job, "--runs", f"{work}/elsewhere")
    with open(f"{runs}/calls", encoding="utf-8") as file:
        check(file.read() == before and not os.path.exists(f"{work}/elsewhere"), "finished runs are not repeated, whatever is left of them")


def options(_):
    sys.path.insert(0, f"{SOURCE}/bench")
    import sync_table  # pylint: disable=import-outside-toplevel

    check(len(sync_table.CELLS) == 16, "16 cells")
    for cell in sync_table.CELLS:
        out, _ = run(2, "train", "--synthetic", "--config", f"{SOURCE}/configs/cifar10_resnet20_10ep.cfg", *sync_table.words_of(cell),
                     "--threads", 1, "--dry-run", "--dry-run-seconds", 0)
        check("global batch 256" in out, cell)


with work_folder() as scratch:
    {"bookkeeping": bookkeeping, "options": options}[sys.argv[1]](scratch)
