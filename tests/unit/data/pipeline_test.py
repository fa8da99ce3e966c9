# SPDX-License-Identifier: Apache-2.0
"""What the loader makes of JPEG files against torchvision's presets through Pillow: evaluation's resizing and centre crop, training's
resized crops, and those with scaled decoding, by mean error. pipeline_test.py PROBE [FOLDER of photographs]"""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
import image_sets as sets  # noqa: E402  (the path is set above)

SIDE, CROPS = 224, 3


def centre(image):
    """torchvision's Resize(side * 8 / 7), CenterCrop(side)."""
    short, (w, h) = SIDE * 8 // 7, image.size
    image = image.resize((short, int(short * h / w)) if w <= h else (int(short * w / h), short), Image.BILINEAR)
    top, left = round((image.height - SIDE) / 2), round((image.width - SIDE) / 2)
    return image.crop((left, top, left + SIDE, top + SIDE))


def resized(image, y, x, height, width):
    return image.crop((x, y, x + width, y + height)).resize((SIDE, SIDE), Image.BILINEAR)


def photographs(folder):
    shapes = [(375, 500), (500, 333), (1200, 1600), (901, 640), (256, 256), (300, 225), (2000, 700), (224, 700)]
    for i, (height, width) in enumerate(shapes):
        for name, options in (("420", {"subsampling": 2}), ("444", {"subsampling": 0})):
            sets.write(f"{folder}/{i}-{name}.jpg", sets.jpeg(sets.photo(40 + i, height, width), quality=90, **options))


def main():
    with tempfile.TemporaryDirectory(prefix="convoy-test-") as work:
        folder = sys.argv[2] if len(sys.argv) > 2 else f"{work}/photographs"
        if len(sys.argv) == 2:
            photographs(folder)
        paths = sorted(str(p) for p in pathlib.Path(folder).rglob("*") if p.is_file())
        questions = [(p, "centre", 0) for p in paths]
        questions += [(p, how, k) for p in paths for how in ("whole", "scaled") for k in range(CROPS)]
        text = "".join(f"{p} {how} {SIDE} {k} {work}/{i}\n" for i, (p, how, k) in enumerate(questions))
        done = subprocess.run([sys.argv[1]], input=text, capture_output=True, text=True, timeout=300, check=True)
        gaps, shrunk = {"centre": [], "whole": [], "scaled": []}, 0
        for i, ((path, how, _), answer) in enumerate(zip(questions, done.stdout.splitlines(), strict=True)):
            fault, *numbers = answer.split()
            assert fault == "whole", answer
            y, x, height, width, denominator = (int(n) for n in numbers)
            image = Image.open(path).convert("RGB")
            expected = centre(image) if how == "centre" else resized(image, y, x, height, width)
            ours = np.fromfile(f"{work}/{i}", np.uint8).reshape(SIDE, SIDE, 3)
            gap = np.abs(ours.astype(np.int16) - np.asarray(expected, np.int16))
            if how == "scaled" and denominator == 1:
                continue
            shrunk += how == "scaled"
            gaps[how].append((float((gap <= 1).mean()), float(gap.mean()), int(gap.max())))
        assert shrunk > 0
        for how in ("centre", "whole"):
            near, most = min(g[0] for g in gaps[how]), max(g[2] for g in gaps[how])
            print(f"{how}: {len(gaps[how])} images, at least {near:.5f} of the values within 1 grey level, none off by more than {most}")
            assert near >= 0.999, how
        means = [g[1] for g in gaps["scaled"]]
        print(f"scaled: {shrunk} images, mean error {np.mean(means):.3f}, of the worst image {max(means):.3f}")
        assert np.mean(means) <= 2.5


main()
