# SPDX-License-Identifier: Apache-2.0
"""configs/cifar10_fast.cfg on synthetic images: whitening filters that whiten, the same bits on any number of ranks, --lr-mult that ends,
views of test images. Usage: fast_recipe_test.py whitening|rates|views"""
import json
import os
import sys

import numpy as np

from runner import SOURCE, check, everything, last, records, run, same_bits, tensors, train, work_folder

CONFIG = ["--config", os.path.join(SOURCE, "configs", "cifar10_fast.cfg"), "--synthetic", "--synthetic-samples", 120, "--synthetic-size", 32,
          "--global-batch", 24, "--replicas", 2]  # 5 steps an epoch
STILL = ["--pad", 0, "--padding-mode", "constant", "--flip", "none"]


def whitening(work):
    found = {}
    for ranks in (1, 2, 3):
        out = f"{work}/{ranks}"
        train(ranks, out, *CONFIG, "--reproducible", "--max-steps", 6, "--save-every-steps", 6, "--skip-eval")
        found[ranks] = everything(last(out))
        check(same_bits(found[ranks], found[1]), f"{ranks} ranks: the same bits")
    filters = found[1]["parameters/whiten.weight"].reshape(24, 12).astype(np.float64)
    check(np.array_equal(filters[:12], -filters[12:]), "the second half are the negatives")
    gram = filters[:12] @ filters[:12].T
    off = np.abs(gram - np.diag(np.diag(gram))).max()
    check(off < 1e-6 * np.diag(gram).max() and np.all(np.diff(np.diag(gram)) >= -1e-6), f"orthogonal, of falling variance ({off:.1e})")
    other = f"{work}/seed"
    train(1, other, *CONFIG, "--seed", 9, "--max-steps", 1, "--skip-eval")
    check(same_bits({"w": found[1]["parameters/whiten.weight"]}, {"w": everything(last(other))["parameters/whiten.weight"]}),
          "they depend on the data, not on the seed, and never train")
    said, _ = train(1, f"{work}/weights", *CONFIG, "--seed", 9, "--max-steps", 1, "--skip-eval", "--weights", f"{work}/1")
    check("whitens" not in said and same_bits({"w": found[1]["parameters/whiten.weight"]}, {"w": everything(last(f"{work}/weights"))["parameters/whiten.weight"]}),
          "with --weights they are those of the file, and no image is read for them")
    check("the slow ones (--lookahead-steps 5)" in said, "the weights are told to be the slow ones")
    for name in ("layers.1.norm1.weight", "layers.3.norm2.weight"):
        check(np.all(found[1][f"parameters/{name}"] == 1), f"{name} stays 1")


def rates(work):
    """After 2 epochs of 5 steps the bias of the whitening filters stays, and nothing else does."""
    out = f"{work}/rates"
    train(1, out, *CONFIG, "--epochs", 3, "--lr-mult", "*.norm?.bias=64,whiten.bias=1@2", "--lookahead-steps", 0, "--save-every", 0,
          "--save-every-steps", 1, "--keep-checkpoints", 20, "--skip-eval")
    at = {step: tensors(os.path.join(out, "checkpoints", f"step-{step:08d}.h5"), "parameters") for step in (9, 10, 11)}
    at[15] = tensors(last(out), "parameters")
    moved = {steps: {name for name in at[9] if at[steps[0]][name].tobytes() != at[steps[1]][name].tobytes()} for steps in ((9, 10), (10, 11), (10, 15))}
    check("whiten.bias" in moved[9, 10], "whiten.bias trains in step 10")
    check(moved[9, 10] - moved[10, 11] == {"whiten.bias"} and "whiten.bias" not in moved[10, 15], "and no longer from step 11 on")
    change = {}
    for factor in (1, 4):
        folder = f"{work}/factor-{factor}"
        train(1, folder, *CONFIG, "--lr-mult", f"head={factor}", "--lookahead-steps", 0, "--max-steps", 1, "--skip-eval")
        change[factor] = tensors(last(folder), "parameters")
    zero = f"{work}/factor-0"
    train(1, zero, *CONFIG, "--lr-mult", "head=0", "--lookahead-steps", 0, "--max-steps", 1, "--skip-eval")
    start = tensors(last(zero), "parameters")["head.weight"].astype(np.float64)
    ratio = np.linalg.norm(change[4]["head.weight"] - start) / np.linalg.norm(change[1]["head.weight"] - start)
    check(abs(ratio - 4) < 1e-4, f"four times the rate: four times the first step ({ratio:.6f})")
    check(same_bits({"w": change[4]["layers.1.conv1.weight"]}, {"w": change[1]["layers.1.conv1.weight"]}), "of the head alone")
    still = f"{work}/backbone-0"
    train(1, still, *CONFIG, "--lr-mult", "backbone=0", "--lookahead-steps", 0, "--max-steps", 2, "--save-every-steps", 1, "--skip-eval")
    first, second = tensors(os.path.join(still, "checkpoints", "step-00000001.h5"), "parameters"), tensors(last(still), "parameters")
    moved = {name for name in first if first[name].tobytes() != second[name].tobytes()}
    check(moved == {"head.weight"}, f"backbone=0 leaves the last layer to train: {moved}")
    _, err = run(1, "train", *CONFIG, "--lr-mult", "layer9=2", "--output-dir", f"{work}/none", expect=2)
    check("--lr-mult 'layer9' matches no parameter of airbench94" in err, "a pattern that matches nothing")


def views(work):
    out = f"{work}/run"
    train(2, out, *CONFIG, *STILL, "--epochs", 2, "--lr", 0.2, "--reproducible")
    of_run = records(out, "val")[-1]

    def evaluated(ranks, *words):
        text, _ = run(ranks, "evaluate", last(out), "--threads", 1, *words)
        return json.loads([line for line in text.splitlines() if line.startswith("{")][-1])

    six = evaluated(1, "--flip-test", "--translate-test", 1)
    check(six["top1_count"] == of_run["top1_count"] and abs(six["loss"] - of_run["loss"]) < 1e-5 * six["loss"], f"evaluate says what the validation did: {six}")
    three = evaluated(3, "--flip-test", "--translate-test", 1, "--batch-size", 7)
    check(three["top1_count"] == six["top1_count"] and abs(three["loss"] - six["loss"]) < 1e-5, "on 3 ranks in batches of 7 the same")
    losses = [evaluated(1, *words)["loss"] for words in ((), ("--flip-test",), ("--translate-test", 1), ("--translate-test", 2))]
    check(len({*losses, six["loss"]}) == 5, f"every set of views has a loss of its own: {losses}, {six['loss']}")


with work_folder() as scratch:
    {"whitening": whitening, "rates": rates, "views": views}[sys.argv[1]](scratch)
