# SPDX-License-Identifier: Apache-2.0
"""Training and evaluation on image files: prepared as JPEG files and as pixels, in memory, streamed and staged, on 1 and 2 ranks."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
import image_sets as sets  # noqa: E402  (the paths are set above)
from preparation import prepare  # noqa: E402
from runner import check, everything, last, records, run, same_bits, train  # noqa: E402

ALIKE = ("--model", "resnet8", "--image-size", 32, "--augment", "imagenet", "--min-random-area", 0.5, "--replicas", 2, "--batch-size", 12,
         "--epochs", 3, "--lr", 0.05, "--sync", "gradients", "--reproducible", "--topk", 2)


def evaluate(ranks, checkpoint, out, *words):
    run(ranks, "evaluate", checkpoint, "--topk", 2, "--output-dir", out, *words)
    with open(f"{out}/result.json", encoding="utf-8") as file:
        return json.load(file)


def expect_same(work, data, ways):
    """All ways of reading on all numbers of ranks end in the same bits."""
    expected = None
    for ranks, *words in ways:
        out = f"{work}/{data}-{ranks}-{'-'.join(str(w) for w in words).strip('-')}"
        text = "".join(train(ranks, out, "--data", f"{work}/{data}", *ALIKE, *words))
        found = everything(last(out))
        expected = expected or found
        check(same_bits(expected, found), f"{data}, {ranks} ranks {' '.join(str(w) for w in words)}: the same bits as the first way")
    return out, text


with tempfile.TemporaryDirectory(prefix="convoy-test-") as folder:
    sets.write_folder(sets.make_set(30, side=48), f"{folder}/in/train")
    sets.write_folder(sets.make_set(7, first=200, side=48), f"{folder}/in/val")
    source = ("folder", "--source", f"{folder}/in", "--partitions", 3, "--val-partitions", 2)
    prepare(folder, "jpeg", *source, "--encoding", "jpeg", "--sizes", "full")
    prepare(folder, "raw", *source, "--sizes", 40)

    local = f"{folder}/node"
    out, text = expect_same(folder, "jpeg", [(1, "--data-cache", "ram"), (2,), (2, "--data-cache", "stream", "--workers", 2),
                                             (2, "--data-cache", "stage", "--stage-dir", local)])
    staged = [name for _, _, names in os.walk(local) for name in names if name.endswith(".h5")]
    check(sorted(staged) == [f"train-0000{i}-of-00003.h5" for i in range(3)] + [f"val-0000{i}-of-00002.h5" for i in range(2)],
          "each partition staged once on this host")
    log = records(out, "train")
    check(log[-1]["images_seen"] == 3 * 120, "every image once an epoch")
    found = records(out, "val")[-1]
    for ranks in (1, 2):
        again = evaluate(ranks, last(out), f"{folder}/e{ranks}", "--data", f"{folder}/jpeg")
        check((again["images"], again["top1_count"], again["top2_count"]) == (28, found["top1_count"], found["topk_count"]) and
              abs(again["loss"] - found["loss"]) < 1e-5, f"evaluated on {ranks} ranks: {again['top1_count']} of 28 as in training")
    expect_same(folder, "raw", [(1, "--data-cache", "ram"), (2, "--data-cache", "stream")])
    _, err = run(1, "train", "--data", f"{folder}/raw", "--model", "resnet8", "--augment", "imagenet", "--image-size", 64, "--max-steps", 1, "--skip-eval", "--output-dir",
                 f"{folder}/enlarged", "--no-checkpoints", "--no-tensorboard", "--threads", 1)
    check("holds images of 40x40 pixels, which are enlarged to 64x64" in err, "images that are enlarged are a warning")
    for cache, opened, alone in (("ram", "load and check: 120 images", "one thread alone: take from memory"),
                                 ("stream", "open: tables of 120 images", "one thread alone: read and check")):
        text, _ = run(2, "bench", "io", "--data", f"{folder}/jpeg", "--augment", "imagenet", "--image-size", 32, "--batch-size", 10, "--steps", 2,
                      "--data-cache", cache)
        check(opened in text and alone in text, f"bench io says what it measured of samples in '{cache}'")

    run(1, "synthetic", "--out", f"{folder}/wide", "--samples", 120, "--val-samples", 31, "--image-size", "24x40", "--classes", 4,
        program=os.environ["CONVOY_PREPROCESS"])
    words = ("--data", f"{folder}/wide", "--model", "resnet8", "--sync", "gradients", "--batch-size", 12, "--flip", "random", "--lr", 0.05)
    train(2, f"{folder}/wide-run", *words, "--epochs", 3)
    found = records(f"{folder}/wide-run", "val")[-1]
    again = evaluate(1, last(f"{folder}/wide-run"), f"{folder}/wide-result", "--data", f"{folder}/wide")
    check(again["top1_count"] == found["top1_count"] and again["images"] == 31, "pixels of 24 x 40: trained on, evaluated")

    # The same photographs, whole: a small network learns them.
    out = f"{folder}/learn"
    train(2, out, "--data", f"{folder}/jpeg", *ALIKE[:4], "--batch-size", 12, "--epochs", 12, "--lr", 0.1, "--sync", "gradients",
          "--topk", 2, "--crop", "window", "--resize", 36, "--val-interval", 0)
    final = records(out, "train")[-1]
    check(final["loss"] < 0.7 * records(out, "train")[0]["loss"], f"loss falls to {final['loss']:.3f}")
