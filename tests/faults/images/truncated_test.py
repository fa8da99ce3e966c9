# SPDX-License-Identifier: Apache-2.0
"""Archives of class archives that end too early, wherever they end: an error that names the archive, never a wait."""
import io
import os
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
import image_sets as sets  # noqa: E402  (the path is set above)
from preparation import check, prepare  # noqa: E402


def class_archive(name):
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for i in range(12):
            sets.add(tar, f"{name}_{i}.JPEG", sets.jpeg(sets.photo(i, 64, 72), quality=95))
    return whole.getvalue()


with tempfile.TemporaryDirectory() as work:
    path = f"{work}/full.tar"
    with tarfile.open(path, "w") as tar:
        for name in sets.CLASSES[:2]:
            sets.add(tar, f"{name}.tar", class_archive(name))
    with open(path, "rb") as file:
        data = file.read()
    with tarfile.open(path) as tar:
        second = tar.getmembers()[1]
    content_ends = second.offset_data + (second.size + 511) // 512 * 512
    cuts = {"inside": second.offset_data + second.size // 2, "header": second.offset + 200, "unmarked": content_ends}
    for name, length in cuts.items():
        with open(f"{work}/{name}.tar", "wb") as file:
            file.write(data[:length])
    words = ["--sizes", 32, "--partitions", 2]
    prepare(work, "whole", "imagenet", "--train", path, *words)
    for name in cuts:
        for ranks in (1, 2):
            text = prepare(work, f"{name}-{ranks}", "imagenet", "--train", f"{work}/{name}.tar", *words, ranks=ranks,
                           expect=3, timeout=20)
            check(f"{name}.tar' is truncated" in text, f"{name}, {ranks} ranks: named")
