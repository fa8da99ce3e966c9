# SPDX-License-Identifier: Apache-2.0
"""The memory of a rank stays within --data-memory for data ten times as large, and is used where it is enough."""
import os
import re
import resource
import subprocess
import sys

from runner import CONVOY, PREPROCESS, check, work_folder

MEGA = 1e6


def peak(*words):
    """Largest resident size of one run, MB of 10^6 bytes, and what it printed. In a process of its own: the kernel keeps one maximum for
    all children."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        done = subprocess.run([CONVOY, *[str(w) for w in words]], capture_output=True, text=True, check=False)
        used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / MEGA
        os.write(writer, f"{done.returncode} {used}\n{done.stdout}{done.stderr}".encode()[:60000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        head, text = pipe.read().decode().split("\n", 1)
    os.waitpid(child, 0)
    code, used = head.split()
    if code != "0":
        sys.exit(f"{words}: ended with {code}\n{text}")
    return float(used), text


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
    block = 23528522 * 4 / MEGA
    taken = {words: forecast("--batch-size", 1, *words)[0] for words in (
        ("--sync", "gradients"), ("--sync", "gradients", "--grad-accum-steps", "4"), ("--sync", "gradients", "--grad-accum-steps", "4", "--reproducible"),
        ("--sync", "weights", "--grad-accum-steps", "4", "--local-steps", "4"),
        ("--sync", "weights", "--grad-accum-steps", "4", "--local-steps", "4", "--node-steps", "2", "--node-replicas", "2"))}
    plain, several, tree, weights, groups = taken.values()
    for name, more, blocks in (("gradients of earlier batches", several - plain, 1), ("a stack of them with --reproducible", tree - plain, 2),
                               ("groups: values and momentum, summed by two replicas", groups - weights, 4)):
        check(abs(more / block - blocks) < 0.02 * blocks, f"{name}: {more:.1f} MB, {blocks} times {block:.1f}")
