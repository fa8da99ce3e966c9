# SPDX-License-Identifier: Apache-2.0
"""--class-weights and --balance classes, on a set of 3 classes with 40, 10 and 6 images: the same bits on any number of ranks, also resumed in
mid-epoch; validations stay unweighted."""
import json
import os
import re
import shutil

import numpy as np
from PIL import Image
from runner import PREPROCESS, check, everything, last, records, run, same_bits, train, work_folder

COUNTS = {"ant": 40, "bee": 10, "cat": 6}


def make_set(work):
    random = np.random.default_rng(3)
    for split, share in (("train", 1), ("val", 2)):
        for k, (name, count) in enumerate(COUNTS.items()):
            folder = f"{work}/photos/{split}/{name}"
            os.makedirs(folder)
            for i in range(count // share):
                pixels = random.integers(0, 120, (16, 16, 3)) + np.eye(3)[k] * 120
                Image.fromarray(pixels.astype(np.uint8)).save(f"{folder}/{i}.png")
    run(1, "folder", "--train", f"{work}/photos/train", "--val", f"{work}/photos/val", "--encoding", "raw", "--sizes", 16, "--partitions", 3,
        "--val-partitions", 1, "--out", f"{work}/set", program=PREPROCESS)
    return f"{work}/set"


def job(data):
    return ["--data", data, "--model", "resnet8", "--sync", "gradients", "--batch-size", 5, "--replicas", 2, "--seed", 4, "--reproducible",
            "--lr", 0.02, "--lr-schedule", "constant", "--print-freq", 1]


def check_weights(work, data):
    words = [*job(data), "--epochs", 2]
    said = "".join(train(1, f"{work}/auto-1", *words, "--class-weights", "auto"))
    # 56 images: 56 / (3 * 40) and 56 / (3 * 6).
    check(re.search(r"count the classes 0\.467 to 3\.11 times .*those of validations count all alike", said), "the start says what weights are")
    train(2, f"{work}/auto-2", *words, "--class-weights", "auto")
    check(same_bits(everything(last(f"{work}/auto-1")), everything(last(f"{work}/auto-2"))), "weighted: 1 and 2 ranks, the same bits")
    train(1, f"{work}/plain", *words)
    train(1, f"{work}/ones", *words, "--class-weights", "1,1,1")
    check(same_bits(everything(last(f"{work}/plain")), everything(last(f"{work}/ones"))), "weights of 1 change no bit")
    with open(f"{work}/weights.txt", "w", encoding="utf-8") as file:
        file.write("# ant, bee, cat\n1\n4, 8\n")
    train(1, f"{work}/file", *words, "--class-weights", f"{work}/weights.txt")
    train(2, f"{work}/list", *words, "--class-weights", "1,4,8")
    check(same_bits(everything(last(f"{work}/file")), everything(last(f"{work}/list"))), "a file of numbers is a list")
    os.remove(f"{work}/weights.txt")
    train(1, f"{work}/file", "--resume", "auto", "--epochs", 3)
    check(len(records(f"{work}/file", "val")) == 3, "a resumed run needs the file no more")

    first = {name: records(f"{work}/{name}", "train")[0]["loss"] for name in ("plain", "auto-1")}
    check(first["plain"] != first["auto-1"], f"the training loss is weighted: {first}")
    found = records(f"{work}/auto-1", "val")[-1]
    out, _ = run(1, "evaluate", f"{work}/auto-1/checkpoints/last.h5", "--threads", 1)
    result = json.loads([line for line in out.splitlines() if line.startswith("{")][-1])
    check(abs(result["loss"] - found["loss"]) < 1e-5, "validation's loss is that of evaluate, which knows no weights")


def check_balance(work, data):
    words = [*job(data), "--balance", "classes", "--skip-eval"]
    train(2, f"{work}/balanced", *words, "--epochs", 3)
    images = [r["images"] for r in records(f"{work}/balanced", "epoch")]
    check(images == [3 * (56 // 3)] * 3, f"an epoch shows 18 images of each class: {images}")
    # 54 images, 10 a step: step 9 lies in the second epoch.
    train(2, f"{work}/start", *words, "--epochs", 3, "--max-steps", 9)
    for ranks in (1, 2, 3):
        folder = f"{work}/balanced-{ranks}"
        shutil.copytree(f"{work}/start", folder)
        train(ranks, folder, "--resume", "auto")
        check(same_bits(everything(last(folder)), everything(last(f"{work}/balanced"))), f"stopped in mid-epoch, resumed on {ranks} ranks, the same bits")


def main():
    with work_folder() as work:
        data = make_set(work)
        check_weights(work, data)
        check_balance(work, data)


main()
