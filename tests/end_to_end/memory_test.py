# SPDX-License-Identifier: Apache-2.0
"""The memory of a rank stays within --data-memory for data ten times as large, and is used where it is enough."""
import re
import subprocess
import sys

from runner import CONVOY, PREPROCESS, check, peak_of, work_folder


def peak(*words):
    """Largest resident size of one run, and what it printed."""
    def call():
        done = subprocess.run([CONVOY, *[str(w) for w in words]], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{words}: ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr
    return peak_of(call)


with work_folder() as folder:
    # 8,000 images of 64 x 64 are 98 MB.
    for name, samples in (("small", 200), ("large", 8000)):
        subprocess.run([PREPROCESS, "synthetic", "--out", f"{folder}/{name}", "--samples", str(samples), "--image-size", "64", "--partitions", "4"],
                       check=True, capture_output=True)
    train = ("train", "--model", "mlp", "--batch-size", 50, "--threads", 1, "--max-steps", 60, "--skip-eval", "--no-checkpoints",
             "--no-tensorboard", "--workers", 2, "--data-memory", 10)
    least, _ = peak(*train, "--data", f"{folder}/small", "--output-dir", f"{folder}/a")
    bounded, text = peak(*train, "--data", f"{folder}/large", "--output-dir", f"{folder}/b")
    told = float(re.search(r"samples and batches take ([\d.]+) MB per rank", text).group(1))
    check(told <= 10, f"the log tells {told} MB of the 10 that are allowed")
    check(bounded - least < 10, f"data of 98 MB, 10 allowed: {bounded:.0f} MB resident, {least:.0f} MB with 2 MB of data")
    free, text = peak(*train[:-1], 500, "--data", f"{folder}/large", "--output-dir", f"{folder}/c")
    check(free - least > 60, f"500 allowed: {free:.0f} MB resident")
    done = subprocess.run([CONVOY, *[str(w) for w in train], "--data", f"{folder}/large", "--output-dir", f"{folder}/d", "--data-cache", "ram"],
                          capture_output=True, text=True, check=False)
    check(done.returncode == 2 and "--data-memory allows 10" in done.stderr, "--data-cache ram says that it is too little")

    def told_of(*words):
        """MB of samples and batches in the log, and in the dry run; the peak learning rate of both."""
        job = ("train", "--model", "lenet", "--threads", "1", "--epochs", "1", "--no-tensorboard", "--no-checkpoints", "--skip-eval", "--data", f"{folder}/small", *words)
        log, dry = (subprocess.run([CONVOY, *job, *more], capture_output=True, text=True, check=True).stdout
                    for more in (("--output-dir", f"{folder}/clipped{len(words)}"), ("--dry-run", "--dry-run-seconds", "0")))
        rate = r"peak learning rate ([\d.e-]+)"
        lines = [float(re.search(rf"#   {line} +([\d.]+) MB", dry).group(1)) for line in ("samples", "batches")]
        return (float(re.search(r"samples and batches take ([\d.]+) MB", log).group(1)), round(sum(lines), 1), float(re.search(rate, log).group(1)),
                float(re.search(rate, dry).group(1)))

    # 200 images: a step takes them all, whatever the batch is. 6 batches of 2^24 samples would take 6 GB.
    all_of_them, huge = told_of("--batch-size", "200"), told_of("--batch-size", str(1 << 24))
    check(all_of_them == huge and abs(huge[2] - 0.1 * 200 / 256) < 1e-9, f"a batch larger than the set: {huge}, as with 200 images: {all_of_them}")
    check(abs(huge[0] - huge[1]) < 0.11 and huge[2] == huge[3], "the dry run counts what the log counts")

    def forecast(*words):
        """What a dry run takes and what there is, in MB, and the largest batch."""
        done = subprocess.run([CONVOY, "train", "--synthetic", "--synthetic-samples", "4000", "--synthetic-size", "32", "--model", "resnet50", "--image-size", "224", "--threads", "1",
                               "--dry-run", "--dry-run-seconds", "0", *map(str, words)], capture_output=True, text=True, check=False)
        check(done.returncode == 0, f"a dry run {words}: {done.stderr}")
        found = re.search(r"largest batch +([\d.]+) of ([\d.]+) MB are taken .*: the largest batch that fits is (\d+)", done.stdout)
        return float(found.group(1)), float(found.group(2)), int(found.group(3))

    _, limit, largest = forecast("--batch-size", 8)
    fits, *same = forecast("--batch-size", largest)
    over, *_ = forecast("--batch-size", largest + 1)
    check(fits <= limit < over and same == [limit, largest], f"batch {largest} takes {fits} of {limit} MB, {largest + 1} {over}")

    # 23,528,522 parameters for 10 classes, and 53,120 statistics. A rank that accumulates keeps the gradients of earlier batches; groups have an average of their own.
    block = 23528522 * 4 / 1e6
    taken = {words: forecast("--batch-size", 1, *words)[0] for words in (
        ("--sync", "gradients"), ("--sync", "gradients", "--grad-accum-steps", "4"), ("--sync", "gradients", "--grad-accum-steps", "4", "--reproducible"),
        ("--sync", "weights", "--grad-accum-steps", "4", "--local-steps", "4"),
        ("--sync", "weights", "--grad-accum-steps", "4", "--local-steps", "4", "--node-steps", "2", "--node-replicas", "2"))}
    plain, several, tree, weights, groups = taken.values()
    for name, more, blocks in (("gradients of earlier batches", several - plain, 1), ("a stack of them with --reproducible", tree - plain, 2),
                               ("groups: values and momentum, summed by two replicas", groups - weights, 4)):
        check(abs(more / block - blocks) < 0.02 * blocks, f"{name}: {more:.1f} MB, {blocks} times {block:.1f}")
