# SPDX-License-Identifier: Apache-2.0
"""What a new user meets beside the training itself: folders of evaluations, tables of runs, a quiet run's log, how to go on after a stop, broken
images under a right checksum, a run that another attempt took over, odd names."""
import csv
import json
import os
import re
import shlex
import struct
import subprocess
import time

import h5py
import numpy as np
from PIL import Image
from runner import CONVOY, PREPROCESS, check, mpirun, records, run, train, work_folder

LENET = ("--model", "lenet", "--image-size", 28, "--batch-size", 4)
NAMES = ["gold \"fish\"", "tench, Tinca tinca"]


def photos(folder, names, count, form="png"):
    for c, name in enumerate(names):
        os.makedirs(f"{folder}/{name}")
        for i in range(count):
            pixels = np.random.default_rng(10 * c + i).integers(60 * c, 60 * c + 120, (32, 32, 3), np.uint8)
            Image.fromarray(pixels).resize((48, 48)).save(f"{folder}/{name}/{i}.{form}")


def prepare(work, name, *words):
    run(1, *words, "--out", f"{work}/{name}", program=PREPROCESS)
    return f"{work}/{name}"


def summary(*words):
    done = subprocess.run([CONVOY, "summary", *words, "--format", "csv"], capture_output=True, text=True, check=True)
    return list(csv.DictReader(done.stdout.splitlines()))


def evaluations(work):
    photos(f"{work}/two", NAMES, 6)
    data = prepare(work, "two-set", "folder", "--train", f"{work}/two", "--val", f"{work}/two", "--sizes", 32)
    out, _ = train(1, f"{work}/runs/two", "--data", data, *LENET, "--epochs", 1, "--label-smoothing", 0.1)
    check("labels smoothed by 0.1" in out, "smoothed losses are said")
    run(2, "evaluate", f"{work}/runs/two", "--output-dir", f"{work}/runs/two", "--threads", 1)
    run(2, "evaluate", f"{work}/runs/two", "--output-dir", f"{work}/runs/two", "--split", "train", "--threads", 1)
    folder = f"{work}/runs/two/evaluation"
    check(sorted(os.listdir(folder)) == ["train", "val"], "each split has a folder in the run directory")
    with open(f"{folder}/train/result.json", encoding="utf-8") as file:
        result = json.load(file)
    check((result["split"], result["data"], result["label_smoothing"], result["images"]) == ("train", data, 0.1, 12), f"the result names split and data: {result}")
    with open(f"{folder}/val/confusion.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    check(rows[0] == ["label\\predicted", *NAMES] and [row[0] for row in rows[1:]] == NAMES and all(len(row) == 3 for row in rows), "names with commas and quotes")
    with open(f"{folder}/val/per_class.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    check([row[1] for row in rows[1:]] == NAMES and all(len(row) == 5 for row in rows), "in both tables")
    report = subprocess.run([CONVOY, "report", f"{work}/runs/two"], capture_output=True, text=True, check=False)
    with open(f"{work}/runs/two/report.html", encoding="utf-8") as file:
        page = file.read()
    check(report.returncode == 0 and "tench, Tinca tinca" in page, "the report shows those evaluations")

    many = prepare(work, "many-set", "synthetic", "--samples", 24, "--val-samples", 8, "--classes", 1001, "--image-size", 28)
    train(1, f"{work}/many", "--data", many, *LENET, "--max-steps", 1)
    out, _ = run(1, "evaluate", f"{work}/many", "--output-dir", f"{work}/many-result", "--threads", 1)
    check(sorted(os.listdir(f"{work}/many-result")) == ["per_class.csv", "result.json", "worst.json"] and "confusion.csv is left out" in out, "no matrix of 1001 classes")


def summaries(work):
    ten = prepare(work, "ten-set", "synthetic", "--samples", 64, "--val-samples", 40, "--image-size", 28)
    train(1, f"{work}/runs/deeper/ten", "--data", ten, *LENET, "--epochs", 1)
    train(1, f"{work}/runs/deeper/eight", "--data", ten, *LENET, "--epochs", 1, "--batch-size", 8)
    for words in ([f"{work}/runs"], [f"{work}/runs/deeper/ten", f"{work}/runs/two", f"{work}/runs/deeper"]):
        rows = summary(*words)
        check(len(rows) == 3, f"{len(rows)} runs, each once")
        check([row for row in rows[0] if row.startswith("top")] == ["top1", "top2", "top5"], "a column for each topK")
        by_name = {os.path.basename(row["run"]): row for row in rows}
        check(by_name["two"]["top2"] == "100.00" and by_name["two"]["top5"] == "" and by_name["ten"]["top2"] == "" and by_name["ten"]["top5"] != "",
              "a network of two classes has no top5")
        check((by_name["ten"]["batch-size"], by_name["eight"]["batch-size"]) == ("4", "8") and by_name["two"]["data"].endswith("/two-set"), "options that differ")
        check("epochs_done" in rows[0] and "epochs" not in rows[0] and "lr-schedule" not in rows[0], "and no others")
        accuracy = [float(row["top1"]) for row in rows]
        check(accuracy == sorted(accuracy, reverse=True), "the best first")
    train(1, f"{work}/runs/failed", "--data", f"{work}/none", *LENET, expect=3)
    train(1, f"{work}/runs/deeper/many", "--data", ten, *LENET, "--epochs", 1, "--batch-size", 16, "--lr", 0.01, "--seed", 3, "--momentum", 0.8, "--weight-decay", 0,
          "--warmup-epochs", 0.5, "--print-freq", 5, "--label-smoothing", 0.2, "--ema-decay", 0.9, "--lr-schedule", "constant", "--flip", "none", "--name", "n" * 150)
    rows = summary(f"{work}/runs")
    failed = [row for row in rows if row["run"].endswith("/failed")]
    check(len(rows) == 5 and failed[0]["result"] == "failed" and rows[-1] == failed[0], "a run that failed before its first step is listed, too")
    names = subprocess.run([CONVOY, "summary", f"{work}/runs", "--format", "csv"], capture_output=True, text=True, check=True).stdout.splitlines()[0].split(",")
    check(len(names) == len(set(names)) and {"name", "momentum", "ema-decay"} <= set(names), "no name twice")
    done = subprocess.run([CONVOY, "summary", f"{work}/runs"], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    note = re.match(r"(\d+) more options differ, but the table has no room for them; --format csv prints all: (.*)$", lines[-1])
    shown = lines[0].split()
    check(max(map(len, lines[:-1])) <= max(160, len(work) + 150) and "name" in note.group(2).split(", "), "a text has what fits")
    check(len(shown) + int(note.group(1)) == len(names) and set(shown) | set(note.group(2).split(", ")) == set(names), "and names what doesn't")
    os.mkdir(f"{work}/empty")
    done = subprocess.run([CONVOY, "summary", f"{work}/empty", f"{work}/runs/two"], capture_output=True, text=True, check=True)
    check("no run below it" in done.stderr and "/runs/two" in done.stdout, "a folder without runs is named")


def quiet(work):
    out, _ = train(1, f"{work}/quiet", "--data", f"{work}/ten-set", *LENET, "--epochs", 1, "--quiet")
    with open(f"{work}/quiet/log.txt", encoding="utf-8") as file:
        log = file.read()
    check(out == "" and "epoch 1 validation" in log and "best held-out accuracy" in log, "a quiet run's log is whole")


def going_on(work):
    folder = f"{work}/go on"
    out, _ = train(2, folder, "--data", f"{work}/ten-set", *LENET, "--epochs", 2, "--max-steps", 3)
    command = re.search(r"continue with: (mpirun .*)", out).group(1)
    words = shlex.split(command)
    check(words == ["mpirun", "-np", "2", "convoy", "train", "--resume", "auto", "--output-dir", folder], "the command that goes on")
    check("--sync weights: each replica updates its own weights" in out and "--sync gradients does as DistributedDataParallel" in out,
          "what --sync does is said in words")
    check("--lr is not given, so it is 0.1, as usual for SGD with 256 images per step" in out, "and why the learning rate is what it is")
    run(2, *words[4:], "--threads", 1)
    check(records(folder, "val")[-1]["epoch"] == 2, "it does")
    done = subprocess.run([CONVOY, "train", "--data", f"{work}/ten-set", *map(str, LENET), "--threads", "1", "--max-steps", "1", "-o", f"{work}/alone"],
                          capture_output=True, text=True, check=True)
    check(f"continue with: convoy train --resume auto --output-dir {work}/alone\n" in done.stdout, "without mpirun, if there was none")


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def break_image(path, number):
    """A scan that can't be decoded, under a right checksum and seal, as another writer may leave it."""
    with h5py.File(path) as file:
        offsets, base, at, count = file["offsets"][...], file["images"].id.get_offset(), file["crc"].id.get_offset(), file["images"].shape[0]
    with open(path, "rb") as file:
        data = bytearray(file.read())
    begin, end = int(base + offsets[number]), int(base + offsets[number + 1])
    middle = begin + (end - begin) * 3 // 4
    data[middle:middle + 2] = b"\xff\x44"
    struct.pack_into("<I", data, at + 4 * number, crc32c(data[begin:end]))
    struct.pack_into("<I", data, 12, 0)
    struct.pack_into("<I", data, 12, crc32c(data[base + count:], crc32c(data[512:base], crc32c(data[:512]))))
    with open(path, "wb") as file:
        file.write(data)


def broken_images(work):
    photos(f"{work}/jpeg", ["a", "b"], 4, "jpg")
    data = prepare(work, "jpeg-set", "folder", "--train", f"{work}/jpeg", "--partitions", 1)
    with h5py.File(f"{data}/train-00000-of-00001.h5") as file:
        check(file.attrs["encoding"] in ("jpeg", b"jpeg"), "photographs are kept as they are")
    break_image(f"{data}/train-00000-of-00001.h5", 3)
    run(1, "verify", data, program=PREPROCESS)
    job = ("--data", data, "--model", "resnet8", "--image-size", 32, "--batch-size", 4, "--epochs", 1)
    for ranks in (1, 3):
        _, err = train(ranks, f"{work}/broken{ranks}", *job, "--skip-eval", expect=3)
        check("can't be decoded" in err and "was stored so" in err and "prepare the set again" in err and "verify" not in err, f"{ranks} ranks: no advice that helps nobody")
        _, err = train(ranks, f"{work}/skipped{ranks}", *job, "--skip-eval", "--on-corrupt", "skip")
        end = [r for r in records(f"{work}/skipped{ranks}", "run") if r["event"] == "end"]
        check(end[-1]["skipped_samples"] == 1 and "1 damaged sample: a neighbour stood in" in err, f"{ranks} ranks: it is counted")
        out, _ = run(ranks, "evaluate", f"{work}/skipped{ranks}", "--data", data, "--split", "train", "--on-corrupt", "skip", "--threads", 1)
        check('"skipped":1' in out, f"{ranks} ranks: in an evaluation, too")


def taken_over(work):
    folder, job = f"{work}/taken", ("--data", f"{work}/ten-set", *LENET, "--print-freq", "1", "--resume", "auto", "--threads", "1")
    first = subprocess.Popen(mpirun(1) + [CONVOY, "train", *map(str, job), "--epochs", "4000", "-o", folder, "--quiet"], stderr=subprocess.PIPE, text=True,
                             env=dict(os.environ, OMP_NUM_THREADS="1"))
    end = time.monotonic() + 30
    while not os.path.exists(f"{folder}/checkpoints/epoch-0001.h5") and time.monotonic() < end:
        time.sleep(0.1)
    run(1, "train", *job, "--epochs", 4001, "--max-steps", 5, "-o", folder, "--take-over")
    _, err = first.communicate(timeout=60)
    check(first.returncode == 6 and "make room" not in err and "continues this run" in err, f"an attempt that was taken over blames no disk (exit {first.returncode})"
          + ("" if first.returncode == 6 and "make room" not in err else err))


def odd_names(work):
    name = os.fsencode(f"{work}/caf") + b"\xe9.png"
    Image.fromarray(np.zeros((32, 32, 3), np.uint8)).save(f"{work}/plain.png")
    os.rename(f"{work}/plain.png", name)
    done = subprocess.run([CONVOY, "predict", f"{work}/runs/two", name, "--format", "json"], capture_output=True, check=True)
    line = json.loads(done.stdout.decode("utf-8").splitlines()[0])
    check(line["classes"][0]["name"] in NAMES, "a path that is no UTF-8 breaks no JSON")


with work_folder() as folder_of_all:
    for part in (evaluations, summaries, quiet, going_on, broken_images, taken_over, odd_names):
        part(folder_of_all)
