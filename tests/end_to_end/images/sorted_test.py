# SPDX-License-Identifier: Apache-2.0
"""A data set whose samples stand in order of their classes, sealed as docs/format.md says: training warns where --shuffle mixes it only in part."""
import os
import struct
import sys
import tempfile

import h5py

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from runner import PREPROCESS, check, run, train  # noqa: E402  (the path is set above)

TABLE = [0] * 256
for number in range(256):
    value = number
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    TABLE[number] = value


def crc32c(data):
    state = 0xFFFFFFFF
    for byte in data:
        state = state >> 8 ^ TABLE[(state ^ byte) & 255]
    return state ^ 0xFFFFFFFF


def sort_labels(path):
    """Puts them in order in the file and seals it again."""
    with h5py.File(path, "r") as file:
        labels = sorted(file["labels"][:].tolist())
        place = file["labels"].id.get_offset()
    with open(path, "rb") as file:
        data = bytearray(file.read())
    data[place:place + 4 * len(labels)] = struct.pack(f"<{len(labels)}i", *labels)
    samples, length = struct.unpack_from("<QQ", data, 24)
    data[12:16] = bytes(4)
    data[12:16] = struct.pack("<I", crc32c(data[:samples] + data[samples + length:]))
    with open(path, "wb") as file:
        file.write(data)


assert crc32c(b"123456789") == 0xE3069283
with tempfile.TemporaryDirectory(prefix="convoy-test-") as work:
    data = f"{work}/data"
    run(1, "synthetic", "--out", data, "--samples", 480, "--val-samples", 20, "--image-size", "28x28", "--classes", 4, "--partitions", 1,
        program=PREPROCESS)

    def warns(ranks, *words):
        out, err = train(ranks, f"{work}/run{len(os.listdir(work))}", "--data", data, "--model", "lenet", "--sync", "gradients", "--batch-size",
                         20, "--max-steps", 1, "--epochs", 1, "--skip-eval", "--no-checkpoints", *words)
        found = [line for line in (out + err).splitlines() if "stand in order of their classes" in line]
        assert len(found) < 2, found
        return found[0] if found else ""

    check(warns(2) == "" and warns(2, "--shuffle", "buffered") == "", "samples as prepared: no warning")
    sort_labels(f"{data}/train-00000-of-00001.h5")
    text = warns(2)
    check(data in text and "--shuffle partition mixes them only in part" in text and "use --shuffle global" in text,
          f"sorted by class on 2 ranks: {text}")
    check("--shuffle buffered mixes" in warns(1, "--shuffle", "buffered", "--shuffle-buffer", 40), "on 1 rank with a buffer, too")
    check(warns(2, "--shuffle", "global") == "" and warns(1) == "", "where all samples are mixed: no warning")
