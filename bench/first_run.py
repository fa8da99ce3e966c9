#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The README's five commands for photographs of one's own: makes 3 classes of 30 photographs, runs the commands as they stand there, and
prints a line for results.md. Exits with 1 if the accuracy is not above 95 %, or if they take more than --most-seconds.

    bench/first_run.py [ARCHIVE] [--most-seconds 180]

ARCHIVE: a tar file of photographs, train/CLASS/*.JPEG. Three of its photographs become a class each: 30 windows of the photograph, of
different place, size, light and direction, which are all that the commands see. Without ARCHIVE the photographs are drawn. The
programs are those of CONVOY and CONVOY_PREPROCESS, or of build/release.
"""
import argparse
import datetime
import io
import json
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time

import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests/support")]
from machine import MACHINE  # noqa: E402  (the path is set above)
import image_sets  # noqa: E402

TITLE = "## Your own photos"
CLASSES, PER_CLASS, SEED = ("bird", "fish", "shark"), 30, 3


def scenes(archive):
    """One large picture a class."""
    if not archive:
        return [Image.fromarray(image_sets.photo(1000 * c, 400, 500)) for c in range(len(CLASSES))]
    found = []
    with tarfile.open(archive) as tar:
        for member in tar:
            if not member.isfile():
                continue
            picture = Image.open(io.BytesIO(tar.extractfile(member).read())).convert("RGB")
            if min(picture.size) >= 300:
                found.append(picture)
            if len(found) == len(CLASSES):
                return found
    sys.exit(f"'{archive}' holds fewer than {len(CLASSES)} photographs of 300 pixels and more")


def window(picture, random):
    """A part of the picture, as another photograph of the same thing would show it."""
    side = int(min(picture.size) * random.uniform(0.5, 1))
    left, top = (int(random.uniform(0, size - side + 1)) for size in picture.size)
    part = picture.crop((left, top, left + side, top + side)).resize((256, 256), Image.Resampling.BILINEAR)
    if random.uniform() < 0.5:
        part = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return Image.fromarray(np.clip(np.asarray(part) * random.uniform(0.7, 1.3), 0, 255).astype(np.uint8))


def make_photos(folder, archive):
    random = np.random.default_rng(SEED)
    for name, picture in zip(CLASSES, scenes(archive)):
        (folder / name).mkdir(parents=True)
        for i in range(PER_CLASS):
            window(picture, random).save(folder / name / f"{i:02}.jpg", quality=92)


def commands():
    """The first block of the README's section, line by line."""
    text = (HERE.parent / "README.md").read_text(encoding="utf-8")
    block = re.search(re.escape(TITLE) + r".*?```sh\n(.*?)```", text, re.DOTALL).group(1)
    return [line for line in block.replace("\\\n", " ").splitlines() if line.startswith(("convoy", "mpirun"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", nargs="?")
    parser.add_argument("--most-seconds", type=float, default=180)
    args = parser.parse_args()
    build = HERE.parent / "build/release"
    programs = {"convoy": os.environ.get("CONVOY", str(build / "src/cli/convoy")),
                "convoy-preprocess": os.environ.get("CONVOY_PREPROCESS", str(build / "preprocess/convoy-preprocess"))}
    seconds, isa = [], "?"
    with tempfile.TemporaryDirectory(prefix="convoy-first-run-") as work:
        work = pathlib.Path(work)
        make_photos(work / "photos", os.path.abspath(args.archive) if args.archive else None)
        (work / "photo.jpg").write_bytes((work / "photos" / CLASSES[1] / "00.jpg").read_bytes())
        for line in commands():
            words = [programs.get(word, word) for word in shlex.split(line, comments=True)]
            begin = time.monotonic()
            done = subprocess.run(words, cwd=work, capture_output=True, text=True, check=False)
            seconds.append(time.monotonic() - begin)
            print(f"{seconds[-1]:6.1f} s  {line}", flush=True)
            if done.returncode != 0:
                sys.exit(f"ended with {done.returncode}\n{done.stdout}{done.stderr}")
            last = done.stdout
            if found := re.search(r"cpu oneDNN \S+ (\S+)", last):
                isa = found.group(1)
        results = sorted((work / "runs").glob("*/evaluation/val/result.json"))
        if len(results) != 1:
            sys.exit(f"{len(results)} evaluations have left a result")
        result = json.loads(results[0].read_text(encoding="utf-8"))
        if not (results[0].parent / "confusion.csv").exists():
            sys.exit("the evaluation left no confusion matrix")
        if CLASSES[1] not in last.splitlines()[1]:
            sys.exit(f"a {CLASSES[1]} is taken for another:\n{last}")
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    kind = "photographs" if args.archive else "drawn photographs"
    print(f"| {datetime.date.today()} | {len(CLASSES)} classes of {PER_CLASS} {kind} | {result['top1']:.2f} % "
          f"({result['top1_count']} of {result['images']}) | {sum(seconds):.0f} ({', '.join(f'{s:.0f}' for s in seconds)}) | "
          f"{usage.ru_utime + usage.ru_stime:.0f} | {MACHINE}, {isa} | `bench/first_run.py` |")
    if result["top1"] <= 95 or sum(seconds) > args.most_seconds:
        sys.exit(f"more than 95 % within {args.most_seconds:.0f} s was wanted")


if __name__ == "__main__":
    main()
