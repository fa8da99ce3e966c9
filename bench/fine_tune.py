#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning from a file of torchvision's form: what does it gain over a random start, on few images?

    bench/fine_tune.py --cifar BIN --work WORK --python /path/to/python-with-torchvision

BIN holds CIFAR-10's binary files. The first five classes train a ResNet-18 of torchvision's form for 10 epochs. `convoy export` writes it as .pth,
torchvision's resnet18 loads that with strict keys and saves its state dict, which `--weights` then reads. The other five classes, with
--images training images each and all 1,000 test images each, are learned by configs/finetune_resnet50.cfg (with ResNet-18, 32 pixels): all layers,
the last layer alone, and from a random start; with this recipe, all layers also with ten times its learning rate. All sets are folders of PNG files, prepared by
`convoy-preprocess folder`. WORK keeps what is finished. Prints lines for results.md; logs go to bench/logs.
"""
import argparse
import collections
import datetime
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import numpy as np
from accuracy import final_top1
from machine import MACHINE
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent / "build/release"
CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
FIRST, OTHER = range(5), range(5, 10)
NETWORK = ["--model", "resnet18", "--resnet-version", "v1", "--image-size", "32", "--resize", "32"]
MODES = {  # name: begins with the weights of the first classes?, options
    "all layers": (True, []),
    "all layers, 10 x learning rate": (True, ["--lr", "0.1"]),
    "last layer": (True, ["--freeze", "backbone"]),
    "random start": (False, []),
    "random start, 10 x learning rate": (False, ["--lr", "0.1"])}
STRICT = """
import sys, torch, torchvision
net = torchvision.models.resnet18(num_classes=5)
net.load_state_dict(torch.load(sys.argv[1], weights_only=True), strict=True)
torch.save(net.state_dict(), sys.argv[2])
"""


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cifar", required=True, help="folder of data_batch_1.bin ... test_batch.bin")
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable, help="a Python with torchvision")
    parser.add_argument("--images", type=int, default=100, help="training images of each class to fine-tune on")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--convoy", default=str(BUILD / "src/cli/convoy"))
    parser.add_argument("--preprocess", default=str(BUILD / "preprocess/convoy-preprocess"))
    return parser.parse_args()


def call(words):
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    words = [str(word) for word in words]
    if subprocess.run(words, env=environment, check=False).returncode != 0:
        sys.exit(f"{' '.join(words)} failed")


def write_images(source, folder, classes, most):
    """Class folders of PNG files: the first `most` images of each class, all if it is None."""
    written = collections.Counter()
    for file in sorted(pathlib.Path(source).glob("test_batch.bin" if folder.name == "val" else "data_batch_*.bin")):
        records = np.fromfile(file, np.uint8).reshape(-1, 3073)
        for number, record in enumerate(records):
            name = folder / CLASSES[record[0]] / f"{file.stem}-{number:05}.png"
            if record[0] not in classes or written[record[0]] == most:
                continue
            written[record[0]] += 1
            name.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(record[1:].reshape(3, 32, 32).transpose(1, 2, 0)).save(name)


def prepare(args, name, classes, most):
    data = args.work / name
    if not (data / "preparation.json").exists():
        photos = args.work / f"{name}-photos"
        shutil.rmtree(photos, ignore_errors=True)
        write_images(args.cifar, photos / "train", classes, most)
        write_images(args.cifar, photos / "val", classes, None)
        call([args.preprocess, "folder", "--source", photos, "--out", data, "--sizes", 32])
    return data


def train(args, folder, words):
    """Returns the last top-1 in percent; logs go to bench/logs."""
    if final_top1(folder) is None:
        call(["mpirun", "--bind-to", "none", "-np", args.ranks, args.convoy, "train", "--threads", 1, "--no-tensorboard", "--resume", "auto",
              "--output-dir", folder, *words])
    shutil.copy(folder / "log.txt", HERE / "logs" / f"fine_tune-{folder.name}.txt")
    return final_top1(folder)


def first_weights(args, recipe):
    """The file that torchvision's resnet18 saved, and the top-1 of its training."""
    data = prepare(args, "first", FIRST, None)
    top1 = train(args, args.work / "first-run", ["--data", data, *recipe, "--optimizer", "nesterov", "--momentum", "0.9", "--weight-decay",
                                                 "5e-4", "--lr", "0.1", "--lr-schedule", "onecycle", "--epochs", "10", "--pad", "4"])
    file, weights = args.work / "first.pth", args.work / "torchvision.pth"
    if not weights.exists():
        call([args.convoy, "export", args.work / "first-run", "--output", file, "--overwrite"])
        call([args.python, "-c", STRICT, file, weights])
    return weights, top1


def main():
    args = parse()
    recipe = ["--config", HERE.parent / "configs/finetune_resnet50.cfg", *NETWORK]
    weights, top1 = first_weights(args, recipe)
    print(f"first classes: {top1:.2f} %", flush=True)
    data = prepare(args, f"other-{args.images}", OTHER, args.images)
    found = {name: [] for name in MODES}
    for seed in range(1, args.seeds + 1):
        for name, (begins, words) in MODES.items():
            folder = args.work / f"{name.replace(',', '').replace(' ', '-')}-{args.images}-{seed}"
            found[name].append(train(args, folder, ["--data", data, *recipe, "--seed", seed, *(["--weights", weights] if begins else []), *words]))
    for name, values in found.items():
        each = ", ".join(f"{value:.2f}" for value in values)
        print(f"| {datetime.date.today()} | {name} | {args.images} | {statistics.mean(values):.2f} ({each}) | {MACHINE} |")


if __name__ == "__main__":
    main()
