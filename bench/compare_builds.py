#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two builds of Convoy on one machine: whether they compute the same bits, and how fast they are by turns.

    bench/compare_builds.py bits BEFORE AFTER            BEFORE, AFTER: source trees with a build in build/release
    bench/compare_builds.py speed BEFORE AFTER [--rounds N] [--cpu-time] [CASE ...]   CASE and --cpu-time as in compare_step.py

bits: each build prepares the same images (every file must be the same bytes), then trains the jobs below on two ranks (the
tensors of the last checkpoint must be the same bytes), then AFTER resumes a checkpoint of BEFORE and must end as BEFORE did.
speed: `convoy bench compute` of both builds by turns; prints lines for bench/results.md."""
import argparse
import datetime
import hashlib
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import h5py
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests/support"))
import image_sets  # noqa: E402  (the path is set above)
from machine import MACHINE  # noqa: E402

ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1",
                   OMP_NUM_THREADS="1")
CIFAR = ["--data", "cifar10", "--batch-size", 50, "--epochs", 2, "--lr", 0.05, "--pad", 2, "--flip", "random"]
JOBS = {  # name: words of `convoy train`; data sets are named as prepare() makes them
    "tiny": ["--config", "configs/tiny.cfg", "--data", "tiny", "--epochs", 2],
    "lenet": ["--data", "mnist", "--model", "lenet", "--batch-size", 50, "--epochs", 2, "--lr", 0.05, "--sync", "gradients"],
    "resnet20, gradients": [*CIFAR, "--model", "resnet20", "--sync", "gradients"],
    "resnet20, weights": [*CIFAR, "--model", "resnet20", "--sync", "weights"],
    "local SGD, momentum averaged": [*CIFAR, "--model", "resnet20", "--sync", "weights", "--local-steps", 3, "--local-momentum", "average"],
    "resnet20, --sync-bn": [*CIFAR, "--model", "resnet20", "--sync", "gradients", "--sync-bn"],
    "mixed-up CIFAR": [*CIFAR, "--model", "resnet8", "--sync", "gradients", "--mixup", 0.4, "--cutmix", 0.6, "--label-smoothing", 0.1,
                       "--optimizer", "nesterov", "--ema-decay", 0.9, "--clip-grad-norm", 1],
    "ImageNet JPEG files": ["--data", "photos", "--model", "resnet18", "--batch-size", 8, "--epochs", 2, "--lr", 0.02, "--augment", "imagenet",
                            "--image-size", 64, "--sync", "gradients", "--topk", 2],
}


class Build:
    def __init__(self, tree):
        self.tree = pathlib.Path(tree).resolve()
        self.convoy = self.tree / "build/release/src/cli/convoy"
        self.preprocess = self.tree / "build/release/preprocess/convoy-preprocess"
        done = subprocess.run([self.convoy, "--version"], capture_output=True, text=True, check=True)
        commit = (re.search(r"git (\w+)", done.stdout) or re.search(r"(\S+)", done.stdout)).group(1)
        self.name = f"{commit} with {re.search(r'oneDNN [0-9.]+', done.stdout).group()}"


def run(folder, ranks, program, *words):
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), str(program), *(str(word) for word in words)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, cwd=folder, check=False)
    if done.returncode not in (0, 75):
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def make_sources(folder):
    """Raw images in the formats that users bring, the same in every run."""
    random = np.random.default_rng(20261128)
    patterns = random.integers(0, 256, (10, 3072))

    def records(images, patterns):
        labels = random.integers(0, 10, images)
        pixels = np.clip(patterns[labels] + random.normal(0, 60, (images, patterns.shape[1])), 0, 255)
        return labels.astype(np.uint8), pixels.astype(np.uint8)

    (folder / "cifar").mkdir(parents=True)
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        labels, pixels = records(200, patterns)
        (folder / "cifar" / name).write_bytes(np.concatenate([labels[:, None], pixels], axis=1).tobytes())
    (folder / "cifar/batches.meta.txt").write_text("".join(f"class{i}\n" for i in range(10)))
    (folder / "mnist").mkdir()
    for name, images in (("train", 1000), ("t10k", 200)):
        labels, pixels = records(images, patterns[:, :784])
        head = np.array([2051, images, 28, 28], ">u4").tobytes()
        (folder / f"mnist/{name}-images-idx3-ubyte").write_bytes(head + pixels.tobytes())
        (folder / f"mnist/{name}-labels-idx1-ubyte").write_bytes(np.array([2049, images], ">u4").tobytes() + labels.tobytes())
    image_sets.write_folder(image_sets.make_set(24, side=72), folder / "photos/train")
    image_sets.write_folder(image_sets.make_set(5, first=200, side=72), folder / "photos/val")


def prepare(build, sources, folder):
    folder.mkdir()
    photos = ["folder", "--source", sources / "photos", "--partitions", 3]
    for ranks, name, words in ((1, "tiny", ["synthetic", "--partitions", 3]),
                               (2, "cifar10", ["cifar10", "--source", sources / "cifar", "--partitions", 4]),
                               (3, "mnist", ["mnist", "--source", sources / "mnist", "--partitions", 2]),
                               (3, "photos", [*photos, "--encoding", "jpeg"]),
                               (2, "squares", photos)):
        run(folder, ranks, build.preprocess, *words, "--out", name)


def digests(folder):
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*.h5"))}


def tensors(path):
    """SHA-256 of all tensors of a checkpoint that decide how training goes on."""
    total = hashlib.sha256()
    with h5py.File(path, "r") as file:
        names = []
        file.visit(names.append)
        for name in sorted(names):
            if isinstance(file[name], h5py.Dataset):
                total.update(name.encode() + file[name][()].tobytes())
    return total.hexdigest()


def train(build, folder, name, words, run_name, *more):
    out = folder / f"run-{re.sub('[^a-z0-9]+', '-', name.lower())}-{run_name}"
    words = [build.tree / word if str(word).startswith("configs/") else word for word in words]
    text = run(folder, 2, build.convoy, "train", *words, "--threads", 1, "--seed", 5, "--no-tensorboard", "--output-dir", out, *more)
    return tensors(out / "checkpoints/last.h5"), text


def compare_bits(before, after):
    failures = 0

    def tell(same, what):
        nonlocal failures
        failures += not same
        print(f"| {datetime.date.today()} | {what} | {'the same' if same else 'DIFFERENT'} | {before.name}, {after.name} | {MACHINE} |", flush=True)

    with tempfile.TemporaryDirectory(prefix="convoy-bench-") as temporary:
        folder = pathlib.Path(temporary)
        make_sources(folder / "sources")
        for build, name in ((before, "before"), (after, "after")):
            prepare(build, folder / "sources", folder / name)
        found = digests(folder / "before")
        tell(found and found == digests(folder / "after"), f"preparation: {len(found)} partitions of 5 sets")
        data = folder / "before"
        for name, words in JOBS.items():
            expected, _ = train(before, data, name, words, "before")
            tell(expected == train(after, data, name, words, "after")[0], name)
        name = "local SGD, momentum averaged"
        expected, _ = train(before, data, name, JOBS[name], "whole")
        train(before, data, name, JOBS[name], "resumed", "--max-steps", 8)  # in the middle of a period: with shards
        resumed, text = train(after, data, name, JOBS[name], "resumed", "--resume", "auto")
        tell(resumed == expected and "resumed from" in text, f"{name}: a checkpoint of the first build, resumed by the second")
    return failures


def compare_speed(before, after, cases, rounds, cpu_time):
    import compare_step  # its cases and models

    def rate(build, words):
        text = run(build.tree, int(words[0]), build.convoy, "bench", "compute", *words[1:])
        return float(re.search(compare_step.CPU_RATE if cpu_time else compare_step.RATE, text).group(1))

    for case in cases or compare_step.STANDARD:
        model, precision, size = case.split(":")
        batch, processes = (int(n) for n in size.split("x")) if "x" in size else (int(size), 1)
        threads = 1 if cpu_time else max(1, len(os.sched_getaffinity(0)) // processes)
        steps = compare_step.STEPS.get(model, 4)
        words = [processes, *compare_step.OURS[model], "--precision", precision, "--batch-size", batch, "--steps", steps, "--threads", threads]
        pairs = []
        for turn in range(rounds):  # each build goes first in every other round
            if turn % 2 == 0:
                old, new = rate(before, words), rate(after, words)
            else:
                new, old = rate(after, words), rate(before, words)
            pairs.append((old, new))
        ratios = [new / old for old, new in pairs]
        print(f"| {datetime.date.today()} | {case} | {statistics.median(old for old, _ in pairs):.1f} | {statistics.median(new for _, new in pairs):.1f} "
              f"| {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}) | {rounds} | {before.name}, {after.name} "
              f"| {compare_step.cpu_model()}{', by CPU time' if cpu_time else ''} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["bits", "speed"])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpu-time", action="store_true", help="speed: run each build with one thread and compare images per second of CPU time; for a machine that others use")
    args = parser.parse_intermixed_args()  # cases may follow options
    before, after = Build(args.before), Build(args.after)
    if args.what == "speed":
        compare_speed(before, after, args.cases, args.rounds, args.cpu_time)
        return 0
    return 1 if compare_bits(before, after) else 0


if __name__ == "__main__":
    sys.exit(main())
