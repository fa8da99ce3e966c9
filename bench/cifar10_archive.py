# SPDX-License-Identifier: Apache-2.0
"""CIFAR-10 as one small archive of JPEG files, for a machine to which only small files can be copied, and back.

pack SOURCE OUT.tar.xz: SOURCE is an archive with train/CLASS/*.jpg and test/CLASS/*.jpg, whose files are kept as they are, or a folder of
the official binary files, whose images are encoded. `convoy-preprocess folder --source OUT.tar.xz --encoding raw --sizes 32` reads it.
unpack OUT.tar.xz FOLDER: the official binary layout, in a fixed random order, for bench/peer/cifar10_torch.py."""
import argparse
import io
import lzma
import os
import tarfile

import numpy as np
from PIL import Image

CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
SPLITS = {"train": [f"data_batch_{i}.bin" for i in range(1, 6)], "test": ["test_batch.bin"]}
PIXELS = 3 * 32 * 32


def encoded(pixels, quality):
    file = io.BytesIO()
    Image.fromarray(pixels.reshape(3, 32, 32).transpose(1, 2, 0)).save(file, "JPEG", quality=quality)
    return file.getvalue()


def from_binary(folder, quality):
    for split, names in SPLITS.items():
        records = np.concatenate([np.fromfile(os.path.join(folder, name), np.uint8).reshape(-1, 1 + PIXELS) for name in names])
        for label, name in enumerate(CLASSES):
            for i, record in enumerate(records[records[:, 0] == label]):
                yield f"{split}/{name}/{i:04}.jpg", encoded(record[1:], quality)


def from_archive(path):
    with tarfile.open(path) as archive:
        files = [(member.name, archive.extractfile(member).read()) for member in archive if member.isfile()]
    yield from sorted(file for file in files if file[0].split("/")[0] in SPLITS)


def pack(args):
    source = from_binary(args.source, args.quality) if os.path.isdir(args.source) else from_archive(args.source)
    # One stream for all: the files' equal heads cost it next to nothing.
    with tarfile.open(args.out, "w:xz", format=tarfile.USTAR_FORMAT, preset=9 | lzma.PRESET_EXTREME) as archive:
        count = 0
        for name, content in source:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
            count += 1
    if count == 0:
        raise SystemExit(f"{args.source} has no train/CLASS/*.jpg and no test/CLASS/*.jpg")
    print(f"{count} images, {os.path.getsize(args.out) / 1e6:.1f} MB")


def unpack(args):
    os.makedirs(args.out, exist_ok=True)
    records = {split: [] for split in SPLITS}
    with tarfile.open(args.source) as archive:
        for member in archive:
            if not member.isfile():
                continue
            split, name, _ = member.name.split("/")
            pixels = np.asarray(Image.open(archive.extractfile(member)).convert("RGB"))
            records[split].append(np.concatenate([[CLASSES.index(name)], pixels.transpose(2, 0, 1).reshape(-1)]).astype(np.uint8))
    for split, names in SPLITS.items():
        order = np.random.RandomState(0).permutation(len(records[split]))
        for name, part in zip(names, np.array_split(np.stack(records[split])[order], len(names))):
            part.tofile(os.path.join(args.out, name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for command in (pack, unpack):
        words = commands.add_parser(command.__name__)
        words.add_argument("source")
        words.add_argument("out")
        words.set_defaults(run=command)
        if command is pack:
            words.add_argument("--quality", type=int, default=75, help="of images that are encoded")
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
