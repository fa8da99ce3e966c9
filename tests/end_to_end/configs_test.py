# SPDX-License-Identifier: Apache-2.0
"""Every configuration for photos takes steps, on synthetic images that are small; those with phases cross from one into the next."""
import os
import re

from runner import SOURCE, check, records, run, train, work_folder

CONFIGS = os.path.join(SOURCE, "configs")
SMALL = ("--synthetic", "--synthetic-samples", 16, "--synthetic-size", 72, "--synthetic-classes", 10, "--no-checkpoints", "--print-freq", 1)
# Option by option what makes a step quick; all else is the file's.
QUICK = {
    "imagenet_alexnet": ("--image-size", 64, "--resize", 72, "--global-batch", 4),
    "imagenet_alexnet ray": ("--image-size", 64, "--resize", 72, "--global-batch", 4, "--variant", "ray", "--initialiser", "truncated_normal",
                             "--initialiser-std", 0.001),
    "imagenet_resnet50": ("--image-size", 32, "--resize", 40, "--batch-size", 2),
    "imagenet_resnet50_cosine": ("--image-size", 32, "--val-image-size", 40, "--val-resize", 48, "--global-batch", 8),  # norms over 2 pixels are chaotic
    "imagenet_resnet152": ("--image-size", 32, "--resize", 40, "--batch-size", 1),
    "imagenet_resnet50_90ep": ("--image-size", 32, "--resize", 40, "--replicas", 2, "--batch-size", 2),
    "imagenet_resnet50_lars32k": ("--image-size", 32, "--resize", 40, "--replicas", 4, "--batch-size", 2),
    "finetune_resnet50": ("--image-size", 64, "--resize", 72, "--global-batch", 8),
}
# Epochs of the first size.
FFCV = {"imagenet_resnet50_ffcv16": 12, "imagenet_resnet50_ffcv88": 71}


def smaller(text):
    """The phases with sizes and batches an eighth, in the order that they had."""
    text = re.sub(r"(image-size = )(\d+)", lambda m: f"{m[1]}{int(m[2]) // 8 + 16}", text)
    return re.sub(r"(batch-size = )(\d+)", lambda m: f"{m[1]}{max(int(m[2]) // 256, 1)}", text)


with work_folder() as folder:
    for name, words in QUICK.items():
        out = f"{folder}/{name.replace(' ', '-')}"
        said = "".join(train(2, out, "--config", f"{CONFIGS}/{name.split()[0]}.cfg", *SMALL, *words, "--max-steps", 2, "--skip-eval"))
        check(("has no effect without --weights" in said) == (name == "finetune_resnet50"), f"{name}: fine-tuning wants weights")
        losses = [r["loss"] for r in records(out, "train")]
        check(len(losses) == 2 and all(0 < loss < 20 for loss in losses), f"{name}: losses {losses}")

    for name, small in FFCV.items():
        text = run(1, "train", "--config", f"{CONFIGS}/{name}.cfg", "--synthetic", "--synthetic-samples", 4096, "--dry-run", "--dry-run-seconds", 0,
                   "--threads", 1)[0]
        check(f"from epoch {small + 1}: 192 x 192 pixels" in text, f"{name}: the second size")
    out = f"{folder}/ffcv"
    with open(f"{CONFIGS}/imagenet_resnet50_ffcv16.cfg", encoding="utf-8") as file, open(f"{folder}/ffcv.cfg", "w", encoding="utf-8") as to:
        to.write(smaller(file.read()))
    train(2, out, "--config", f"{folder}/ffcv.cfg", *SMALL, "--replicas", 2, "--val-image-size", 40, "--val-resize", 46, "--start-epoch", 11,
          "--run-epochs", 2)
    log = records(out, "train")
    check([r["epoch"] for r in log] == [12] * 4 + [13] * 4, f"steps of both sizes: {[r['epoch'] for r in log]}")
    # Up to 1.7 in 2 of 16 epochs, then in a straight line to 0.
    check(all(abs(r["lr"] - 1.7 * (16 - 11 - i / 4) / 14) < 1e-6 for i, r in enumerate(log)), f"rates {[r['lr'] for r in log]}")

    path = f"{CONFIGS}/imagenet_resnet50_phases.cfg"
    text = run(1, "train", "--config", path, "--synthetic", "--synthetic-samples", 2000, "--dry-run", "--dry-run-seconds", 0, "--threads", 1)[0]
    check("from epoch 15: 224 x 224 pixels, global batch 1792" in text and "from epoch 33: 288 x 288" in text, "phases of the file")
    with open(path, encoding="utf-8") as file, open(f"{folder}/phases.cfg", "w", encoding="utf-8") as to:
        to.write(smaller(file.read()))
    out = f"{folder}/phases"
    text = "".join(train(2, out, "--config", f"{folder}/phases.cfg", *SMALL, "--replicas", 2, "--start-epoch", 13, "--run-epochs", 2))
    log = records(out, "train")
    check([r["epoch"] for r in log] == [14] * 4 + [15] * 8, f"steps of both phases: {[r['epoch'] for r in log]}")
    check({round(r["lr"], 4) for r in log} == {1.0, 0.4375}, "each with its rate")
