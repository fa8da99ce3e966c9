# SPDX-License-Identifier: Apache-2.0
"""Images that are not as they should be: converted or skipped by rule, counted and named; errors under --strict."""
import gzip
import io
import os
import resource
import struct
import sys
import tarfile
import tempfile
import zlib

import numpy as np
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
import image_sets as sets  # noqa: E402  (the path is set above)
from preparation import check, prepare  # noqa: E402


def make_zoo():
    """name -> (bytes, finding, what a reader must see or None)"""
    base = Image.fromarray(sets.photo(5, 60, 80))
    exif = Image.Exif()
    exif[0x0112] = 8
    turned = base.transpose(Image.Transpose.ROTATE_270)  # stored so that orientation 8 shows `base`
    whole = sets.jpeg(base, quality=92)
    deep = np.random.default_rng(3).integers(0, 65536, (60, 80), np.uint16)
    scans = sets.jpeg(base, progressive=True)
    upright, chunk = sets.png(turned), b"eXIf" + exif.tobytes()[6:]
    end = len(upright) - 12  # of the last chunk
    late = upright[:end] + struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) + upright[end:]
    zoo = {
        "good.JPEG": (whole, None, base),
        "grey.JPEG": (sets.jpeg(base.convert("L")), "grey", base.convert("L").convert("RGB")),
        "ink.JPEG": (sets.jpeg(base.convert("CMYK")), "CMYK", base),
        "palette.png": (sets.png(base.convert("P", palette=Image.Palette.ADAPTIVE)), "palette", base),
        "alpha.png": (sets.png(base.convert("RGBA")), "alpha", base),
        "deep.png": (sets.png(Image.fromarray(deep)), "16 bits a channel", None),
        "turned.JPEG": (sets.jpeg(turned, exif=exif, quality=92), "EXIF-rotated", base),
        "really-png.JPEG": (sets.png(base), "misnamed", base),
        "really-jpeg.png": (whole, "misnamed", base),
        "warned.JPEG": (whole[:2] + b"\xff\xfe\x00\x04abjunk" + whole[2:], "decoder warning", base),
        "progressive.JPEG": (scans, None, base),
        "unended.JPEG": (whole[:-2], "decoder warning", base),
        "unended-scans.JPEG": (scans[:-2], "decoder warning", base),
        "no-last-scan.JPEG": (scans[:scans.rindex(b"\xff\xda")], "truncated", None),
        "turned-late.png": (late, "EXIF-rotated", base),
        "empty.JPEG": (b"", "empty", None),
        "text.JPEG": (b"this is a text file", "not an image", None),
        "page.JPEG": (b"<html>404</html>", "not an image", None),
        "gif.JPEG": (b"GIF89a" + bytes(50), "not an image", None),
        "cut.JPEG": (whole[: len(whole) * 2 // 3], "truncated", None),
        "head.JPEG": (whole[:150], "truncated", None),
        "cut.png": (sets.png(base)[:2000], "truncated", None),
        "hurt.png": (flipped(sets.png(base), 1000), "damaged", None),
        "huge.JPEG": (whole.replace(b"\x00\x3c\x00\x50", b"\xff\xd0\xff\xd0", 1), "too large", None),
        "twelve.JPEG": (whole.replace(b"\xff\xc0\x00\x11\x08", b"\xff\xc0\x00\x11\x0c", 1), "unsupported", None),
    }
    webp = sets.encoded(base, "WEBP")
    others = {
        "webp.webp": (webp, None, base),
        "lossless.webp": (sets.encoded(base, "WEBP", lossless=True), None, base),
        "alpha.webp": (sets.encoded(clear(base), "WEBP", exact=True), "alpha", base),
        "turned.webp": (sets.encoded(turned, "WEBP", exif=exif.tobytes()), "EXIF-rotated", base),
        "moving.webp": (sets.encoded(base, "WEBP", save_all=True, append_images=[turned.resize(base.size)]), None, base),
        "really-webp.JPEG": (webp, "misnamed", base),
        "cut.webp": (webp[: len(webp) * 2 // 3], "truncated", None),
    }
    with open(f"{os.environ['CONVOY_BUILD']}/CMakeCache.txt", encoding="utf-8") as file:
        reads_webp = "WEBPDEMUX_LIBRARY:FILEPATH=/" in file.read()
    return zoo | (others if reads_webp else {n: (d, "unsupported", None) for n, (d, _, _) in others.items()})


def clear(image):
    """With an alpha channel of all values, under which the colours stay."""
    result = image.convert("RGBA")
    result.putalpha(Image.linear_gradient("L").resize(image.size))
    return result


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1:]


def expect_zoo(folder, zoo, text, encoding):
    report = [line.split("\t") for line in open(f"{folder}/report.tsv", encoding="utf-8").read().splitlines()]
    found = {}
    for finding, name, _ in report:
        found.setdefault(name.split("/")[-1], []).append(finding)
    for name, (_, finding, _) in zoo.items():
        expected = [finding] if finding else []
        if name == "deep.png":
            expected = ["grey", finding]
        assert sorted(found.get(name, [])) == sorted(expected), (name, found.get(name), expected)
    split = sets.Split(folder)
    skipped = {"empty", "not an image", "truncated", "damaged", "too large", "unsupported"}
    kept = {n for n, (_, finding, _) in zoo.items() if finding not in skipped}
    assert {n.split("/")[-1] for n in split.names} == kept, kept ^ {n.split("/")[-1] for n in split.names}
    for name, stored in zip(split.names, split.images):
        image = zoo[name.split("/")[-1]][2]
        if image is None:
            continue
        if encoding == "jpeg":
            decoded = Image.open(io.BytesIO(stored))
            assert decoded.format == "JPEG" and decoded.mode in ("RGB", "L") and decoded.getexif().get(0x0112, 1) == 1
            ours, expected = np.asarray(decoded.convert("RGB")).astype(int), np.asarray(image).astype(int)
        else:
            ours, expected = stored.astype(int), np.asarray(image.resize((32, 32), Image.BILINEAR)).astype(int)
        assert ours.shape == expected.shape, (name, ours.shape, expected.shape)
        assert np.abs(ours - expected).mean() < 12, (name, np.abs(ours - expected).mean())
    for name, (_, finding, _) in zoo.items():
        if finding:
            assert finding in text, finding
    check(f"{len(zoo)} images read, {len(kept)} kept, {len(zoo) - len(kept)} skipped" in text, f"the zoo as {encoding}")


def labels(work):
    """Labels alone, a line an image: by the numbers of the images, or not at all."""
    pictures = [sets.jpeg(sets.photo(i, 20, 20)) for i in range(4)]
    for stem in ("val_0000", "b_0"):
        sets.write_folder({f"{stem}{i + 1}.jpg": (p, 0) for i, p in enumerate(pictures)}, f"{work}/{stem[0]}")
    sets.write_folder({"c_01.jpg": (pictures[0], 0)}, f"{work}/b")
    sets.write(f"{work}/four", b"\xef\xbb\xbf" + b"x\ny\nx\nz\n")
    sets.write(f"{work}/three", "x\ny\nx\n")
    base = ("folder", "--sizes", 8, "--keep-names", "--train", f"{work}/v", "--label-file")
    prepare(work, "o1", *base, f"{work}/four")
    split = sets.Split(f"{work}/o1")
    check(split.classes == ["x", "y", "z"] and dict(zip(split.names, split.labels)) ==
          {"val_00001.jpg": 0, "val_00002.jpg": 1, "val_00003.jpg": 0, "val_00004.jpg": 2}, "labels by number")
    text = prepare(work, "o2", *base, f"{work}/three", expect=3, ranks=2)
    check("val_00004.jpg' has no line among the 3 labels" in text and text.count("error:") == 1, "fewer labels than images")
    os.unlink(f"{work}/v/val_00002.jpg")
    text = prepare(work, "o3", *base, f"{work}/four")
    check("1 of the 4 lines of the label file" in text, "fewer images than labels")
    text = prepare(work, "o4", "folder", "--sizes", 8, "--train", f"{work}/b", "--label-file", f"{work}/four", expect=3, ranks=2)
    check("2 images have the number 1 (" in text and text.count("error:") == 1, "two images of one number")


def sizes(work, picture):
    """What no image can be is never held in memory."""
    allowed = (1 << 20) + 3 * 400
    padded = picture + bytes(allowed - len(picture))
    announced = struct.pack("<II", 0xCED7230A, (1 << 29) - 4) + bytes(24) + picture
    bomb = tarfile.TarInfo("a/bomb.jpg")
    bomb.size = 1 << 28
    os.makedirs(work)
    with gzip.open(f"{work}/in.tar.gz", "wb", 1) as file:
        for name, data in (("a/1.jpg", picture), ("a/2.jpg", padded), ("a/3.jpg", padded + b"\0")):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            file.write(member.tobuf() + data + bytes(-len(data) % 512))
        file.write(bomb.tobuf())
        for _ in range(16):
            file.write(bytes(1 << 24))
        file.write(bytes(1024))
    sets.write(f"{work}/in/a/1.jpg", picture)
    sets.write(f"{work}/in/a/2.jpg", padded)
    sets.write(f"{work}/in/a/3.jpg", padded + b"\0")
    sets.write(f"{work}/in/a/bomb.jpg", picture)
    os.truncate(f"{work}/in/a/bomb.jpg", 1 << 40)
    sets.write(f"{work}/in.rec", b"".join(sets.record(float(i), i, d) for i, d in enumerate((picture, padded, padded + b"\0", picture))))
    sets.write(f"{work}/cut.rec", sets.record(0.0, 0, picture) + announced)
    base = ("--sizes", 8, "--keep-names", "--max-pixels", 400, "--memory", 16)
    for kind, name, kept, skipped in (("folder", "in.tar.gz", 2, 2), ("folder", "in", 2, 2), ("recordio", "in.rec", 3, 1)):
        text = prepare(work, f"o-{name}", kind, "--train", f"{work}/{name}", *base)
        check(f"{kept + skipped} images read, {kept} kept, {skipped} skipped" in text and "too large" in text, f"files that are too large: {name}")
    text = prepare(work, "o-cut", "recordio", "--train", f"{work}/cut.rec", *base, expect=3)
    check("cut.rec' is truncated" in text, "a record that announces more than there is")
    megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    check(megabytes < 200, f"never took {megabytes:.0f} MB")


with tempfile.TemporaryDirectory(prefix="convoy-test-") as work:
    animals = make_zoo()
    sets.write_folder({f"a/{n}": (d, 0) for n, (d, _, _) in animals.items()}, f"{work}/zoo")
    base = ("folder", "--train", f"{work}/zoo", "--keep-names", "--exts", "jpg,jpeg,png,webp")
    expect_zoo(f"{work}/raw", animals, prepare(work, "raw", *base, "--sizes", 32, ranks=2), "raw")
    expect_zoo(f"{work}/jpeg", animals, prepare(work, "jpeg", *base, "--encoding", "jpeg"), "jpeg")

    text = prepare(work, "strict", *base, "--sizes", 32, "--strict", expect=3, ranks=2)
    check("as --strict demands" in text and f"{len(animals)} images read" in text and text.count("error:") == 1, "--strict")
    check(not [n for n in os.listdir(f"{work}/strict") if n.endswith(".h5")], "leaves no partition")
    text = prepare(work, "strict", *base, "--sizes", 32)
    check("reading" not in text and sets.digest(f"{work}/strict") == sets.digest(f"{work}/raw"), "and is gone on from")
    sets.write_folder({"a/x.JPEG": (animals["grey.JPEG"][0], 0)}, f"{work}/grey")
    prepare(work, "lenient", "folder", "--train", f"{work}/grey", "--sizes", 32, "--strict=skipped")
    prepare(work, "severe", "folder", "--train", f"{work}/grey", "--sizes", 32, "--strict", expect=3)
    print("ok --strict=skipped", flush=True)

    # Names that come twice, and labels that don't come at all.
    picture, other = sets.jpeg(sets.photo(1, 20, 20)), sets.jpeg(sets.photo(2, 20, 20))
    sets.write(f"{work}/tars/a.tar", sets.tar_of([("1.jpg", picture), ("1.jpg", picture), ("2.jpg", picture),
                                                  ("2.jpg", other), ("3.jpg", other)]))
    text = prepare(work, "twice", "folder", "--train", f"{work}/tars", "--sizes", 8, "--keep-names", ranks=2)
    report = open(f"{work}/twice/report.tsv", encoding="utf-8").read()
    check(report == "duplicate name\ta/1.jpg\tthe same bytes\nduplicate name\ta/2.jpg\tother bytes or class\n", "duplicates")
    check(sorted(sets.Split(f"{work}/twice").names) == ["a/1.jpg", "a/2.jpg", "a/3.jpg"], "are kept once")
    sets.write(f"{work}/labels.txt", "1.jpg 4\na/3.jpg 0\n")
    text = prepare(work, "labels", "folder", "--train", f"{work}/tars", "--label-file", f"{work}/labels.txt", "--sizes", 8,
                   "--keep-names")
    report = open(f"{work}/labels/report.tsv", encoding="utf-8").read()
    check(report.count("no label\ta/2.jpg\t\n") == 2, "a missing label is named")
    split = sets.Split(f"{work}/labels")
    check(dict(zip(split.names, split.labels)) == {"a/1.jpg": 4, "a/3.jpg": 0} and len(split.classes) == 5, "the others stay")
    labels(f"{work}/by")
    sizes(f"{work}/bomb", sets.jpeg(sets.photo(1, 20, 20)))
