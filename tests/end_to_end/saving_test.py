# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of running jobs: written beside the steps, at an interval of the program's choice, and which of several is gone on from.
Usage: saving_test.py CASE."""
import glob
import json
import os
import re
import shutil
import sys

from runner import PREPROCESS, check, last, records, run, train, work_folder

SHIM = os.path.join(os.environ["CONVOY_BUILD"], "tests", "libconvoy_failing_calls_preload.so")
JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 320, "--model", "lenet", "--batch-size", 8, "--lr", 0.01, "--skip-eval",
       "--save-every", 0, "--seed", 7]


def state(folder):
    with open(os.path.join(folder, "state.json"), encoding="utf-8") as file:
        return json.load(file)


def beside(work):
    """A disk that takes a second for a checkpoint: the steps don't."""
    for mode, words in (("gradients", ["--sync", "gradients"]), ("weights", ["--sync", "weights", "--local-steps", 3])):
        folder = f"{work}/{mode}"
        train(2, folder, *JOB, *words, "--epochs", 10, "--print-freq", 1, "--save-every-steps", 100,
              env={"LD_PRELOAD": SHIM, "CONVOY_FAILING_CALLS": "fsync:step-:1000ms"})
        log = open(f"{folder}/log.txt", encoding="utf-8").read()
        seconds, stall = map(float, re.search(r"checkpoint of step 100: ([\d.]+) s .* stood still for ([\d.]+) s", log).groups())
        check(seconds > 1 and stall < 0.5 * seconds, f"{mode}: {seconds} s for the first checkpoint, steps stood still for {stall} s")
        longest = max(r["step_time"] for r in records(folder, "train") if 100 < r["step"] < 150)
        check(longest < 0.5 * seconds, f"{mode}: the longest step beside it took {longest:.3f} s")


def interval(work):
    """sqrt(2 C M), from the measured C."""
    folder = f"{work}/interval"
    out, _ = train(1, folder, *JOB, "--epochs", 60, "--save-every-minutes", "auto", "--mtbf", 1e-4, "--keep-checkpoints", 100)
    found = re.search(r"a checkpoint every (\d+) s: sqrt\(2 C M\), C = ([\d.]+) s as measured, M = 0.0001 h", out)
    check(found is not None, "interval: it is printed" + ("" if found else "\n" + out))
    check(float(found[1]) <= (2 * (float(found[2]) + 0.005) * 0.36) ** 0.5 + 0.5, f"interval: {found[0]}")
    count = len(glob.glob(f"{folder}/checkpoints/step-*.h5"))
    check(count >= 2, f"interval: {count} checkpoints")


def choice(work):
    """The newest that is whole and of this run; the others are named."""
    folder, other = f"{work}/run", f"{work}/other"
    words = [*JOB, "--epochs", 2, "--save-every-steps", 5, "--keep-checkpoints", 9]
    train(2, folder, *words, "--max-steps", 20)
    train(2, other, *words, "--max-steps", 30, "--model", "mlp")
    shutil.copy(f"{other}/checkpoints/step-00000030.h5", f"{folder}/checkpoints/")  # of another network
    train(2, f"{work}/third", *words, "--max-steps", 25)
    shutil.copy(f"{work}/third/checkpoints/step-00000025.h5", f"{folder}/checkpoints/")  # of another run
    for path, at in ((last(folder), 5000), (f"{folder}/checkpoints/step-00000020.h5", 100)):  # a bit of the values, and of the head
        with open(path, "r+b") as file:
            file.seek(at)
            byte = file.read(1)
            file.seek(at)
            file.write(bytes([byte[0] ^ 16]))
    os.truncate(f"{folder}/checkpoints/step-00000015.h5", 4000)
    _, err = train(2, folder, *words, "--resume", "auto")
    for text in ("step-00000030.h5' is not of this run (it is of mlp", "step-00000025.h5' is not of this run (it is of run '", "last.h5' is damaged",
                 "step-00000020.h5' is damaged", "step-00000015.h5' is damaged"):
        check(err.count(text) == 1, f"choice: says once '{text}'" + ("" if text in err else "\n" + err))
    resumed = [r for r in records(folder, "run") if r["event"] == "resume"]
    check(resumed[-1]["step"] == 10 and resumed[-1]["checkpoint"].endswith("step-00000010.h5"), "choice: the newest whole one of this run")
    check(state(folder)["result"] == "finished" and state(folder)["start_step"] == 10, "choice: goes on to the end")

    for path in glob.glob(f"{folder}/checkpoints/*"):
        os.remove(path)
    shutil.copy(f"{other}/checkpoints/step-00000030.h5", f"{folder}/checkpoints/")
    _, err = run(2, "train", "--output-dir", folder, *words, "--resume", "auto", expect=2)
    check("holds no checkpoint to continue from" in err and "checkpoints.old-1" in err and err.count("error:") == 1,
          "choice: nothing but foreign ones is an error, which names what was moved aside")
    check(os.listdir(f"{folder}/checkpoints") == ["step-00000030.h5"], "choice: they are left alone")


def read_once(work):
    """A resume on several ranks opens no file of the run more often than one rank does."""
    folder = f"{work}/run"
    words = [*JOB, "--epochs", 2, "--sync", "gradients", "--replicas", 4]
    train(1, folder, *words, "--max-steps", 5)
    opened = {}
    for ranks in (1, 4):
        copy, log = f"{work}/on-{ranks}", f"{work}/{ranks}.log"
        shutil.copytree(folder, copy)
        train(ranks, copy, *words, "--max-steps", 6, "--resume", "auto", env={"LD_PRELOAD": SHIM, "CONVOY_CALLS_LOG": log})
        opened[ranks] = {path: times for path, times in opens(log, copy).items() if not path.startswith("heartbeats")}
    check(opened[1] and opened[1] == opened[4], f"read_once: as often on 4 ranks as on 1: {opened}")


def headers_once(work):
    """Four ranks, of which each reads the samples of a partition of its own, open no partition more often than one rank does."""
    data = f"{work}/data"
    run(1, "synthetic", "--out", data, "--samples", 320, "--val-samples", 80, "--image-size", 16, "--partitions", 4, program=PREPROCESS)
    words = ["--data", data, "--model", "lenet", "--batch-size", 8, "--lr", 0.01, "--save-every", 0, "--replicas", 4, "--max-steps", 2,
             "--skip-eval", "--no-checkpoints"]
    opened = {}
    for ranks in (1, 4):
        log = f"{work}/{ranks}.log"
        train(ranks, f"{work}/run-{ranks}", *words, env={"LD_PRELOAD": SHIM, "CONVOY_CALLS_LOG": log})
        opened[ranks] = opens(log, data)
    check(len(opened[1]) >= 4 and opened[1] == opened[4], f"headers_once: as often on 4 ranks as on 1: {opened}")


def tools_once(work):
    """preflight and bench io open each file as often on 4 ranks as on 1; in bench io each rank has its own partition."""
    data = f"{work}/data"
    run(1, "synthetic", "--out", data, "--samples", 320, "--val-samples", 80, "--image-size", 16, "--partitions", 4, program=PREPROCESS)
    for name, words in (("preflight", ["preflight", "--data", data, "--threads", 1, "--output-dir", f"{work}/run"]),
                        ("bench io", ["bench", "io", "--data", data, "--batch-size", 8, "--steps", 4, "--shuffle", "partition"])):
        opened = {}
        for ranks in (1, 4):
            log = f"{work}/{words[0]}-{ranks}.log"
            busy = name == "preflight" and ranks > 1  # it ends with 4 if there are too few cores
            run(ranks, *words, expect=None if busy else 0, env={"LD_PRELOAD": SHIM, "CONVOY_CALLS_LOG": log})
            opened[ranks] = opens(log, data)
        check(len(opened[1]) >= 4 and opened[1] == opened[4], f"{name}: as often on 4 ranks as on 1: {opened}")


def labels_once(work):
    """What balances classes, and what is evaluated: as headers_once."""
    data = f"{work}/data"
    run(1, "synthetic", "--out", data, "--samples", 320, "--val-samples", 80, "--image-size", 16, "--partitions", 4, "--val-partitions", 4,
        "--classes", 4, program=PREPROCESS)
    model = ["--data", data, "--model", "lenet", "--batch-size", 8, "--lr", 0.01, "--replicas", 4, "--max-steps", 2, "--skip-eval"]
    for words in (["--class-weights", "auto"], ["--balance", "classes", "--shuffle", "global", "--data-cache", "stream"]):
        opened = {}
        for ranks in (1, 4):
            log = f"{work}/{words[0]}-{ranks}.log"
            train(ranks, f"{work}/run{words[0]}-{ranks}", *model, *words, env={"LD_PRELOAD": SHIM, "CONVOY_CALLS_LOG": log})
            opened[ranks] = opens(log, data)
        # Each rank opens the partitions whose samples it reads: its own, or with a global order all of them.
        own = 1 if words[0] == "--class-weights" else 4
        alike = len(opened[1]) >= 4 and opened[1].keys() == opened[4].keys() and all(opened[4][path] - opened[1][path] == own - 1 for path in opened[1])
        check(alike, f"{words[0]}: as often on 4 ranks as on 1: {opened}")
    opened = {}
    for ranks in (1, 4):
        log = f"{work}/evaluate-{ranks}.log"
        run(ranks, "evaluate", f"{work}/run--class-weights-1", "--threads", 1, env={"LD_PRELOAD": SHIM, "CONVOY_CALLS_LOG": log})
        opened[ranks] = opens(log, data)
    check(len(opened[1]) == 4 and opened[1] == opened[4], f"evaluate: as often on 4 ranks as on 1: {opened}")


def opens(log, folder):
    """How often each file of a folder was opened to be read."""
    with open(log, encoding="utf-8") as lines:
        paths = [os.path.relpath(line.split(" ", 1)[1].strip(), folder) for line in lines if line.startswith(f"read {folder}/")]
    return {path: paths.count(path) for path in paths}


if __name__ == "__main__":
    cases = {f.__name__: f for f in (beside, interval, choice, read_once, headers_once, tools_once, labels_once)}
    with work_folder() as work_path:
        for case in sys.argv[1:] or cases:
            cases[case](work_path)
