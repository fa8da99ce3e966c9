# SPDX-License-Identifier: Apache-2.0
"""Rectangular validation, alone and in a phase, and evaluation with mirrored images: the same counts for any ranks and batches."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
import image_sets as sets  # noqa: E402  (the paths are set above)
from preparation import prepare  # noqa: E402
from runner import check, last, records, run, train  # noqa: E402

CONFIG = """
model = resnet8
augment = imagenet
batch-size = 12
lr = 0.05
sync = gradients
epochs = 4
topk = 2
[phase.1]
epochs = 0:2
image-size = 24
[phase.2]
epochs = 2:4
image-size = 32
rectangular-validation = true
"""


def evaluate(work, ranks, checkpoint, *words):
    run(ranks, "evaluate", checkpoint, "--data", f"{work}/jpeg", "--topk", 2, "--threads", 1, "--output-dir", f"{work}/result", *words)
    with open(f"{work}/result/result.json", encoding="utf-8") as file:
        found = json.load(file)
    assert found["images"] == 40, found
    return found["top1_count"], found["top2_count"], found["loss"]


def alike(a, b):
    return a[:2] == b[:2] and abs(a[2] - b[2]) < 1e-5


with tempfile.TemporaryDirectory(prefix="convoy-test-") as folder:
    sets.write_folder(sets.make_set(20, side=48), f"{folder}/in/train")
    sets.write_folder(sets.make_set(10, first=200, side=48), f"{folder}/in/val")
    prepare(folder, "jpeg", "folder", "--source", f"{folder}/in", "--encoding", "jpeg", "--sizes", "full", "--val-partitions", 3)
    with open(f"{folder}/phases.cfg", "w", encoding="utf-8") as file:
        file.write(CONFIG)
    out = f"{folder}/run"
    train(2, out, "--data", f"{folder}/jpeg", "--config", f"{folder}/phases.cfg")
    val = records(out, "val")
    check(all(r["images"] == 40 for r in val), "every image once")
    seen = (val[-1]["top1_count"], val[-1]["topk_count"], val[-1]["loss"])

    rectangular = evaluate(folder, 1, last(out))
    check(alike(rectangular, seen), f"evaluated in the phase's shape: {rectangular}")
    check(alike(rectangular, evaluate(folder, 3, last(out), "--batch-size", 3)), "on 3 ranks, in batches of 3: the same counts")
    early = f"{out}/checkpoints/epoch-0002.h5"
    square = evaluate(folder, 2, early)
    check(square[:2] == (val[1]["top1_count"], val[1]["topk_count"]) and abs(square[2] - val[1]["loss"]) < 1e-5, "the earlier phase, in squares of its size")
    check(abs(square[2] - evaluate(folder, 2, early, "--rectangular-validation")[2]) > 1e-4, "rectangles are something else")

    mirrored = evaluate(folder, 2, last(out), "--flip-test")
    check(alike(mirrored, evaluate(folder, 1, last(out), "--flip-test", "--batch-size", 7)), f"--flip-test on 1 and 2 ranks: {mirrored}")
    check(abs(mirrored[2] - rectangular[2]) > 1e-4, "which is not the plain evaluation")

    synthetic = ["--synthetic", "--synthetic-classes", 4]
    train(2, f"{folder}/synthetic", *synthetic, "--model", "resnet8", "--batch-size", 12, "--max-steps", 1)
    text = run(2, "evaluate", last(f"{folder}/synthetic"), *synthetic, "--rectangular-validation")[1]
    check(text.count("warning: ") == 1 and "holds pixels of one size" in text, "where all have one shape a warning says so, once")
    _, err = run(1, "train", "--data", f"{folder}/jpeg", "--model", "alexnet", "--image-size", 64, "--rectangular-validation", "--output-dir",
                 f"{folder}/alexnet", expect=2)
    check("needs a network that ends in global pooling" in err, "a network that takes one size alone says so: exit 2")
