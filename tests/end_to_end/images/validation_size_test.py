# SPDX-License-Identifier: Apache-2.0
"""Training and validation sizes apart, in torchvision's spelling: what the run validates is what evaluate, predict and export show of
its checkpoints, on 1 and 3 ranks, of JPEG files, of pixels and after a stop."""
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
import image_sets as sets  # noqa: E402  (the paths are set above)
from onnx_model import Model  # noqa: E402
from preparation import prepare  # noqa: E402
from runner import check, everything, last, records, run, same_bits, train  # noqa: E402

VAL, CROP, RESIZE = 28, 32, 40
COMMON = ("--model", "resnet8", "--replicas", 3, "--batch-size", 8, "--epochs", 4, "--lr", 0.05, "--sync", "gradients", "--reproducible",
          "--topk", 2)
SIZES = {"jpeg": ("--augment", "imagenet", "--train-crop-size", 24, "--val-crop-size", CROP, "--val-resize-size", RESIZE),
         # Trained on windows of 24 out of 30 pixels, validated on the centre of the pixels as they are stored.
         "raw": ("--image-size", 24, "--resize", 30, "--val-image-size", 48, "--val-resize", 48)}


def evaluate(ranks, checkpoint, *words):
    out, _ = run(ranks, "evaluate", checkpoint, "--topk", 2, "--threads", 1, "--batch-size", 5, *words)
    return json.loads([line for line in out.splitlines() if line.startswith("{")][-1])


def same(result, found):
    return (result["images"] == VAL and result["top1_count"] == found["top1_count"] and result["top2_count"] == found["topk_count"] and
            abs(result["loss"] - found["loss"]) < 1e-5)


def one_set(work, kind, crop, resize):
    data = f"{work}/{kind}"
    runs = {ranks: f"{work}/{kind}-{ranks}" for ranks in (1, 3)}
    for ranks, folder in runs.items():
        said = "".join(train(ranks, folder, "--data", data, *COMMON, *SIZES[kind]))
        check(f"{VAL} validation images of {crop}x{crop}" in said, f"{kind}, {ranks} ranks: the log tells the size of validation")
    check(same_bits(everything(last(runs[1])), everything(last(runs[3]))), f"{kind}: 1 and 3 ranks, the same bits")
    found = records(runs[1], "val")[-1]
    check(found["top1_count"] == records(runs[3], "val")[-1]["top1_count"], f"{kind}: 1 and 3 ranks validate {found['top1_count']} of {VAL}")
    for ranks in (1, 3):
        check(same(evaluate(ranks, last(runs[1])), found), f"{kind}: evaluate on {ranks} ranks says what the validation did")
    explicit = evaluate(1, last(runs[1]), "--val-crop-size", crop, "--val-resize-size", resize)
    check(same(explicit, found), f"{kind}: and so with the sizes given")
    # Another size is another picture.
    other = evaluate(1, last(runs[1]), "--image-size", 24, "--resize", 30)
    check(abs(other["loss"] - found["loss"]) > 1e-4, f"{kind}: 24 pixels are another loss ({other['loss']:.4f}, {found['loss']:.4f})")
    out, _ = run(1, "inspect", "checkpoint", last(runs[1]))
    check(f"input         {crop} x {crop} of a short side of {resize}" in out, f"{kind}: the checkpoint tells input and short side")
    out, _ = run(3, "predict", last(runs[1]), data, "--threads", 1, "--output", f"{work}/{kind}.txt")
    told = re.search(r"\((\d+) of (\d+) with labels\)", out)
    check(told and [int(n) for n in told.groups()] == [found["top1_count"], VAL], f"{kind}: predict is right as often ({told and told[0]})")
    run(1, "export", last(runs[1]), "--output", f"{work}/{kind}.onnx")
    model = Model(f"{work}/{kind}.onnx")
    check(json.loads(model.metadata["crop_size"]) == [crop, crop] and model.metadata["resize_size"] == str(resize) and
          [int(side) for side in model.inputs[0][1][2:]] == [crop, crop], f"{kind}: the exported graph takes {crop} x {crop} of {resize}")
    # A run that was stopped goes on with both sizes, which its configuration holds.
    stopped = f"{work}/{kind}-stopped"
    train(3, stopped, "--data", data, *COMMON, *SIZES[kind], "--run-epochs", 2)
    train(1, stopped, "--resume", "auto", "--replicas", 3)
    check(same_bits(everything(last(runs[1])), everything(last(stopped))), f"{kind}: stopped and resumed, the same bits")
    losses = [[r["loss"] for r in records(f, "val")] for f in (stopped, runs[1])]
    check(len(losses[0]) == len(losses[1]) and all(abs(a - b) < 1e-5 for a, b in zip(*losses)), f"{kind}: and the same validations {losses}")


with tempfile.TemporaryDirectory(prefix="convoy-test-") as folder:
    sets.write_folder(sets.make_set(18, side=48), f"{folder}/in/train")
    sets.write_folder(sets.make_set(7, first=200, side=48), f"{folder}/in/val")
    prepare(folder, "jpeg", "folder", "--source", f"{folder}/in", "--partitions", 2, "--encoding", "jpeg", "--sizes", "full")
    prepare(folder, "raw", "folder", "--source", f"{folder}/in", "--partitions", 2, "--sizes", 48)
    one_set(folder, "jpeg", CROP, RESIZE)
    one_set(folder, "raw", 48, 48)

    # Rectangles: the short side is the validation's, and larger than the training's.
    rectangles = f"{folder}/rectangles"
    train(3, rectangles, "--data", f"{folder}/jpeg", *COMMON, *SIZES["jpeg"], "--rectangular-validation")
    found = records(rectangles, "val")[-1]
    check(same(evaluate(1, last(rectangles)), found), "rectangular validation: evaluate repeats it")

    # A first layer that counts the pixels can't have two sizes; a larger validation needs more memory.
    for ranks in (1, 3):
        _, err = run(ranks, "train", "--data", f"{folder}/raw", "--model", "lenet", "--image-size", 28, "--val-image-size", 36, "--max-steps", 1,
                     "--output-dir", f"{folder}/refused", "--threads", 1, expect=2)
        check("--val-image-size 36 is not possible" in err and "28 x 28" in err and err.count("error:") == 1, f"{ranks} ranks: lenet has one size")
    activations = []
    for words in ((), ("--val-image-size", 24), ("--val-image-size", 96, "--val-resize", 96)):
        out, _ = run(1, "train", "--data", f"{folder}/jpeg", *COMMON, "--augment", "imagenet", "--image-size", 24, "--eval-batch-size", 28, *words,
                     "--dry-run", "--dry-run-seconds", 0, "--output-dir", f"{folder}/dry", "--threads", 1)
        activations.append(float(re.search(r"activations +([0-9.]+) MB", out)[1]))
    check(activations[0] == activations[1] and activations[2] > 1.5 * activations[1], f"a dry run counts what validation needs: {activations} MB")
