# SPDX-License-Identifier: Apache-2.0
"""Small sets of image files for tests of data preparation, in every form a source may have, and what must come out."""
import hashlib
import io
import os
import struct
import tarfile

import h5py
import numpy as np
from PIL import Image

CLASSES = ["n01440764", "n01443537", "n01484850", "n02085620"]


def photo(seed, height, width):
    """Smooth structure, edges and noise, as photographs have."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    planes = []
    for _ in range(3):
        fy, fx, phase = rng.uniform(0.02, 0.3), rng.uniform(0.02, 0.3), rng.uniform(0, 6)
        planes.append(110 + 60 * np.sin(fy * y + fx * x + phase) + np.where((x * fx + y * fy) % 4 < 2, 40, 0))
    return np.clip(np.stack(planes, -1) + rng.normal(0, 5, (height, width, 1)), 0, 255).astype(np.uint8)


def encoded(image, form, **options):
    buffer = io.BytesIO()
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(buffer, form, **options)
    return buffer.getvalue()


def jpeg(image, **options):
    return encoded(image, "JPEG", **options)


def png(image, **options):
    return encoded(image, "PNG", **options)


def make_set(per_class=9, first=0, side=64):
    """`class/class_n.JPEG` -> (file bytes, class number)"""
    files = {}
    for c, name in enumerate(CLASSES):
        for i in range(first, first + per_class):
            height, width = side + 7 * (i % 5), side + 11 * (i % 4)
            files[f"{name}/{name}_{i}.JPEG"] = (jpeg(photo(1000 * c + i, height, width), quality=90), c)
    return files


def write_folder(files, folder):
    for name, (data, _) in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)


def add(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def tar_of(members, mode="w", **options):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode, **options) as tar:
        for name, data in members:
            add(tar, name, data)
    return buffer.getvalue()


def class_tars(files):
    """`class` -> bytes of its archive, members without folder"""
    return {name: tar_of([(n.split("/")[1], d) for n, (d, _) in files.items() if n.startswith(name + "/")])
            for name in CLASSES}


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def record(label, number, data, labels=()):
    """MXNet's image record, cut where the payload holds the magic."""
    magic = struct.pack("<I", 0xCED7230A)
    payload = struct.pack("<IfQQ", len(labels), label, number, 0) + struct.pack(f"<{len(labels)}f", *labels) + data
    cuts, at = [], 0
    while True:  # dmlc-core looks at whole words
        at = payload.find(magic, at)
        if at < 0:
            break
        if at % 4 == 0:
            cuts.append(at)
            at += 3
        at += 1
    parts, begin = [], 0
    for cut in cuts:
        parts.append(payload[begin:cut])
        begin = cut + 4
    parts.append(payload[begin:])
    out = b""
    for i, part in enumerate(parts):
        flag = 0 if len(parts) == 1 else 1 if i == 0 else 3 if i == len(parts) - 1 else 2
        out += magic + struct.pack("<I", flag << 29 | len(part)) + part + bytes(-len(part) % 4)
    return out


def decode(data, mode="RGB"):
    return Image.open(io.BytesIO(data)).convert(mode)


# docs/format.md, written down once more.


def mix(x):
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 % 2**64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def order_key(name, seed=1):
    h = 0xCBF29CE484222325 ^ mix(seed)
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return mix(h), name


class Split:
    """All partitions of a split, read with h5py."""

    def __init__(self, folder, split="train"):
        paths = sorted(p for p in os.listdir(folder) if p.startswith(split + "-") and p.endswith(".h5"))
        assert paths, f"no {split} in {folder}: {os.listdir(folder)}"
        self.sizes, parts = [], []
        for path in paths:
            with h5py.File(os.path.join(folder, path), "r") as file:
                parts.append({name: item[()] for name, item in file.items()})
                self.attributes = dict(file.attrs)
                self.sizes.append(len(file["labels"]))
        self.labels = np.concatenate([p["labels"] for p in parts])
        self.ids = np.concatenate([p["ids"] for p in parts])
        self.dimensions = np.concatenate([p["dimensions"] for p in parts])
        self.classes = [name.decode() for name in self.attributes["class_names"]]
        self.jpeg = self.attributes["encoding"] == b"jpeg"
        if self.jpeg:
            self.images = [p["images"][a:b].tobytes() for p in parts for a, b in zip(p["offsets"], p["offsets"][1:])]
        else:
            self.images = np.concatenate([p["images"] for p in parts])
        self.mean_image = parts[0].get("mean_image")
        self.names = None
        if "names" in parts[0]:
            self.names = [p["names"][a:b].tobytes().decode() for p in parts
                          for a, b in zip(p["name_offsets"], p["name_offsets"][1:])]
        assert (self.ids == np.arange(len(self.ids))).all()
        assert max(self.sizes) - min(self.sizes) <= 1


def digest(folder):
    """Of all files that a preparation leaves for others to read."""
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            full = os.path.join(path, name)
            # `source` tells where and when files were found: the same bytes elsewhere have another.
            if name != "preparation.json":
                with open(full, "rb") as file:
                    found[os.path.relpath(full, folder)] = hashlib.sha256(file.read()).hexdigest()
    return found
