# SPDX-License-Identifier: Apache-2.0
"""convoy preview shows what the network sees; convoy evaluate keeps the images with the largest loss, and convoy report shows them.
Usage: pictures_test.py [CASE ...]"""
import base64
import html.parser
import io
import json
import os
import re
import subprocess
import sys

import h5py
import numpy as np
from PIL import Image
from runner import CONVOY, PREPROCESS, SOURCE, check, run, train, work_folder


class Sheet(html.parser.HTMLParser):
    """Pictures (pixels, caption) in the order of a page, and what it refers to outside."""
    def __init__(self, path):
        super().__init__()
        self.images, self.outside = [], []
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.feed(self.text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        source = values.get("src", "")
        if tag == "img":
            if not source.startswith("data:image/jpeg;base64,"):
                self.outside.append(source)
            picture = Image.open(io.BytesIO(base64.b64decode(source.split(",", 1)[1], validate=True)))
            self.images.append((np.asarray(picture).astype(int), values["alt"]))
        elif source or values.get("href") or tag in ("script", "link"):
            self.outside.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)


def sheet(work, *words, samples=3, appearances=4):
    path = f"{work}/sheet.html"
    done = subprocess.run([CONVOY, "preview", *map(str, words), "--samples", str(samples), "--appearances", str(appearances), "-o", path], capture_output=True,
                          text=True, timeout=60, check=False)
    check(done.returncode == 0 and done.stdout == f"{path}\n", f"preview {words}: {done.stderr}")
    page = Sheet(path)
    check(not page.outside and len(page.images) == samples * (appearances + 1), f"{len(page.images)} pictures, nothing from outside")
    check(os.path.getsize(path) < 1_000_000, f"{os.path.getsize(path)} bytes are below 1 MB")
    rows = [page.images[i:i + appearances + 1] for i in range(0, len(page.images), appearances + 1)]
    return rows, page.text


def near(a, b):
    """But for what a JPEG loses of these fine textures, 14 to 15 levels; other samples and mirrors differ by 22 and more."""
    return a.shape == b.shape and np.abs(a - b).mean() < 18


def preview(work):
    data = f"{work}/data"
    subprocess.run([PREPROCESS, "synthetic", "--samples", "60", "--image-size", "32", "--partitions", "2", "--out", data], check=True, capture_output=True)
    stored, labels = [], []
    for number in range(2):
        with h5py.File(f"{data}/train-0000{number}-of-00002.h5", "r") as file:
            stored += list(file["images"][()].astype(int))
            labels += list(file["labels"][()])
            names = [name.decode() for name in file.attrs["class_names"]]
    wanted = [stored[index] for index in (0, 20, 40)]
    rows, _ = sheet(work, "--data", data, "--flip", "none")
    check(all(near(picture, image) for row, image in zip(rows, wanted) for picture, _ in row), "without augmentation every epoch shows the stored image")
    check([row[1][1] for row in rows] == [names[labels[index]] for index in (0, 20, 40)], "with its class")
    rows, _ = sheet(work, "--data", data, "--flip", "random", "--seed", 3, appearances=12)
    flipped = [[near(picture, image[:, ::-1]) for picture, _ in row[1:]] for row, image in zip(rows, wanted)]
    plain = [[near(picture, image) for picture, _ in row[1:]] for row, image in zip(rows, wanted)]
    check(all(a != b for one, two in zip(flipped, plain) for a, b in zip(one, two)) and 5 < sum(map(sum, flipped)) < 31, f"flips: {flipped}")
    check(all(near(row[0][0], image) for row, image in zip(rows, wanted)), "evaluation's column is the stored image")
    turned, _ = sheet(work, "--data", data, "--vertical-flip", 1)
    check(all(near(picture, image[::-1]) for row, image in zip(turned, wanted) for picture, _ in row[1:]), "vertical flips")
    check(all(near(row[0][0], image) for row, image in zip(turned, wanted)), "which evaluation doesn't make")
    sizes, _ = sheet(work, "--data", data, "--image-size", 24, "--val-image-size", 32)
    check(all(row[0][0].shape[:2] == (32, 32) and row[1][0].shape[:2] == (24, 24) for row in sizes), "evaluation's column has the size of validation")
    again, _ = sheet(work, "--data", data, "--flip", "random", "--seed", 3, appearances=12)
    check(all((a[0] == b[0]).all() for one, two in zip(rows, again) for a, b in zip(one, two)), "the same seed shows the same")
    rows, _ = sheet(work, "--data", data, "--flip", "none", "--mixup", 1.0)
    shares = [re.fullmatch(r"(\d\.\d\d) (\S+) \+ (\d\.\d\d) (\S+)", caption) for row in rows for _, caption in row[1:]]
    check(all(shares) and all(abs(float(s[1]) + float(s[3]) - 1) < 0.011 for s in shares), "mixed images name both classes and their shares")
    rows, _ = sheet(work, "--data", data, "--flip", "none", "--pad", 8, samples=6, appearances=10)
    corners = [picture[0, 0].max() < 30 and picture[-1, -1].min() >= 0 for row in rows for picture, _ in row[1:]]
    check(any(corners) and not all(corners), "padding comes into view at some corners")


def kinds(work):
    """Photographs of any size, other channels, configurations, and what can't be shown."""
    folder = f"{work}/photos"
    for label, colour in (("red", (220, 30, 30)), ("green", (30, 200, 40))):
        os.makedirs(f"{folder}/{label}")
        for i in range(4):
            Image.new("RGB", (300 + 20 * i, 260), colour).save(f"{folder}/{label}/{i}.jpg", quality=95)
    subprocess.run([PREPROCESS, "folder", "--source", folder, "--out", f"{work}/photo-set"], check=True, capture_output=True)
    rows, text = sheet(work, "--data", f"{work}/photo-set", "--image-size", 224, "--augment", "imagenet", samples=8, appearances=9)
    colours = {"red": (220, 30, 30), "green": (30, 200, 40)}
    check(all(np.abs(picture[40:-40, 40:-40] - colours[caption]).mean() < 8 for row in rows for picture, caption in row), "photographs in the colours of their class")
    check("random" in text and {caption for row in rows for _, caption in row} == set(colours), "the page tells how images are made")
    rows, _ = sheet(work, "--synthetic", "--synthetic-channels", 1, "--synthetic-size", 28)
    check(all(picture.shape == (28, 28) for row in rows for picture, _ in row), "grey images")
    sheet(work, "--config", f"{SOURCE}/configs/cifar10_resnet20.cfg", "--synthetic", samples=12, appearances=12)
    _, err = run(1, "preview", "--synthetic", "--synthetic-channels", 4, expect=2)
    check("4 channels can't be shown" in err, "four channels are refused")
    _, err = run(1, "preview", "--synthetic", "--samples", 20, "--appearances", 20, expect=2)
    check("of 144 in all" in err, "a sheet that would be too large is refused")
    check("use 'convoy preview --data DIR'" in run(1, "preview", expect=2)[1], "no data set")


def colours(work):
    """PCA noise with the set's own components: its colours lie on a line, and the noise keeps to it."""
    folder, along = f"{work}/line", np.array([40.0, 16.0, -24.0])
    shares = np.linspace(-1, 1, 9)
    for label in ("a", "b"):
        os.makedirs(f"{folder}/{label}")
        for i, share in enumerate(shares):
            colour = tuple(int(v) for v in np.round(120 + share * along))
            Image.new("RGB", (24, 24), colour).save(f"{folder}/{label}/{i}.png")
    subprocess.run([PREPROCESS, "folder", "--source", folder, "--sizes", "16", "--out", f"{work}/line-set"], check=True, capture_output=True)

    def shifts(noise, *words):
        rows, _ = sheet(work, "--data", f"{work}/line-set", "--flip", "none", "--pca-noise", noise, *words, samples=18, appearances=7)
        return np.array([(picture - row[0][0]).mean((0, 1)) for row in rows for picture, _ in row[1:]])

    length = np.linalg.norm(along)
    own, other = shifts(5, "--pca-noise-source", "data"), shifts(0.5)
    sizes = own @ along / length
    off = own - np.outer(sizes, along / length)
    wanted = 5 * length**2 * np.mean(shares**2) / 255  # an eigenvalue is a variance
    check(np.abs(off).max() < 3 and 0.8 < sizes.std() / wanted < 1.25, f"along the line, {sizes.std():.1f} levels of {wanted:.1f}, {np.abs(off).max():.1f} off it")
    grey = np.array([0.5675, 0.5808, 0.5836])
    sizes = other @ grey
    check(0.8 < sizes.std() / (0.5 * 255 * 0.2175) < 1.25, f"ImageNet's brighten and darken by default, {sizes.std():.1f} levels")


def worst(work):
    folder = f"{work}/photos"
    rng = np.random.default_rng(5)
    for split, count in (("train", 8), ("val", 5)):
        for label in range(3):
            os.makedirs(f"{folder}/{split}/class {label}")
            for i in range(count):
                pixels = np.clip(rng.normal((60 + 60 * label, 120, 200 - 60 * label), 60, (40, 40, 3)), 0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(f"{folder}/{split}/class {label}/{split}-{label}-{i}.jpg", quality=95)
    data = f"{work}/set"
    subprocess.run([PREPROCESS, "folder", "--source", folder, "--sizes", "32", "--keep-names", "--out", data], check=True, capture_output=True)
    train(2, f"{work}/run", "--data", data, "--model", "lenet", "--batch-size", 4, "--epochs", 1, "--lr", 0.01)
    found = {}
    for ranks in (1, 3):
        run(ranks, "evaluate", f"{work}/run", "--output-dir", f"{work}/run", "--threads", 1)
        with open(f"{work}/run/evaluation/val/worst.json", encoding="utf-8") as file:
            found[ranks] = json.load(file)["images"]
    with open(f"{work}/run/evaluation/val/result.json", encoding="utf-8") as file:
        result = json.load(file)
    images = found[1]
    losses = [image["loss"] for image in images]
    check(len(images) == 15 and losses == sorted(losses, reverse=True), "all of a small split, the worst first")
    check(abs(np.mean(losses) - result["loss"]) < 1e-4, f"their mean is the loss of the split: {np.mean(losses)} {result['loss']}")
    check(sum(image["label"] == image["predicted"] for image in images) == result["top1_count"], "the hits are those of the result")
    check({image["name"].split("/")[-1] for image in images} == {f"val-{label}-{i}.jpg" for label in range(3) for i in range(5)}, "with the files' names")
    check(all(f"-{image['label'][-1]}-" in image["name"] for image in images), "and their classes")
    check(sorted(image["name"] for image in images) == sorted(image["name"] for image in found[3]) and
          np.allclose(losses, [image["loss"] for image in found[3]], atol=1e-4), "any number of ranks keeps the same")
    done = subprocess.run([CONVOY, "report", f"{work}/run"], capture_output=True, text=True, check=True)
    page = Sheet(done.stdout.strip())
    check(not page.outside and [caption for _, caption in page.images] == [image["name"] for image in found[3]], "the report shows them with their names")
    check(f"{images[0]['label']}, taken for {images[0]['predicted']}" in page.text and os.path.getsize(done.stdout.strip()) < 1_000_000, "and what they were taken for")
    before = {image["name"]: image["jpeg"] for image in images}
    check(all(before[image["name"]] == image["jpeg"] for image in found[3]), "a picture is the same bytes from any rank")


if __name__ == "__main__":
    with work_folder() as work_:
        cases = {case.__name__: case for case in (preview, kinds, colours, worst)}
        for name in sys.argv[1:] or cases:
            cases[name](work_)
