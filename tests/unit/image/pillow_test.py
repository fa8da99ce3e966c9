# SPDX-License-Identifier: Apache-2.0
"""src/image against Pillow: the same pixels from the same files. Images are made here."""
import io
import os
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image


def photo(height, width, seed):
    """Smooth structure with edges and a little noise, as a photograph has."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    planes = []
    for _ in range(3):
        fy, fx, phase = rng.uniform(0.01, 0.2), rng.uniform(0.01, 0.2), rng.uniform(0, 6)
        wave = np.sin(fy * y + fx * x + phase) * 70 + np.where((x * fx + y * fy) % 5 < 2, 50, 0)
        planes.append(100 + wave + rng.normal(0, 6, (height, width)))
    return np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)


def save(path, image, kind, **options):
    image.save(path, kind, **options)
    return path


def upright(image):
    from PIL import ImageOps

    return ImageOps.exif_transpose(image)


def columns_of(pixels, size):
    """Pillow's pass along the rows, in integers."""
    count = pixels.shape[1]
    scale = count / size
    support = max(scale, 1.0)
    result = np.empty((pixels.shape[0], size, pixels.shape[2]), np.uint8)
    for i in range(size):
        centre = (i + 0.5) * scale
        first, end = max(int(centre - support + 0.5), 0), min(int(centre + support + 0.5), count)
        weights = np.maximum(0, 1 - np.abs((np.arange(first, end) - centre + 0.5) * (1.0 / support)))
        weights = (weights / weights.sum() * (1 << 22) + 0.5).astype(np.int64)
        total = (pixels[:, first:end].astype(np.int64) * weights[None, :, None]).sum(1) + (1 << 21)
        result[:, i] = np.clip(total >> 22, 0, 255)
    return result


def rows_of(pixels, size):
    return columns_of(pixels.transpose(1, 0, 2), size).transpose(1, 0, 2)


def make_files(folder):
    """name -> (path, the flags it should get)"""
    files = {}
    sizes = [(333, 500), (64, 1000), (500, 375), (17, 23), (1, 1), (8, 8), (96, 128), (701, 301)]
    for i, (height, width) in enumerate(sizes):
        image = Image.fromarray(photo(height, width, i))
        for name, options in (("420", {"subsampling": 2}), ("444", {"subsampling": 0}), ("422", {"subsampling": 1}),
                              ("prog", {"progressive": True})):
            files[f"{height}x{width}-{name}"] = (save(f"{folder}/{height}x{width}-{name}.jpg", image, "JPEG",
                                                      quality=88, **options), "-")
    base = Image.fromarray(photo(90, 120, 100))
    files["grey"] = (save(f"{folder}/grey.jpg", base.convert("L"), "JPEG"), "grey,")
    files["cmyk"] = (save(f"{folder}/cmyk.jpg", base.convert("CMYK"), "JPEG"), "cmyk,")
    files["png"] = (save(f"{folder}/png.JPEG", base, "PNG"), "-")
    files["palette"] = (save(f"{folder}/palette.png", base.convert("P"), "PNG"), "palette,")
    files["bits"] = (save(f"{folder}/bits.png", base.convert("1"), "PNG"), "grey,")
    files["alpha"] = (save(f"{folder}/alpha.png", base.convert("RGBA"), "PNG"), "alpha,")
    files["greyalpha"] = (save(f"{folder}/la.png", base.convert("LA"), "PNG"), "grey,alpha,")
    for orientation in range(2, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        files[f"turned{orientation}"] = (save(f"{folder}/o{orientation}.jpg", base, "JPEG", exif=exif), "rotated,")
    exif = Image.Exif()
    exif[0x0112] = 6
    files["turnedpng"] = (save(f"{folder}/o6.png", base, "PNG", exif=exif), "rotated,")
    return files


def main():
    probe = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="convoy-test-") as folder:
        files = make_files(folder)
        questions = []
        for name, (path, flags) in files.items():
            for how in ("full", "short 256", "short 32", "to 224 224", "to 50 131"):
                questions.append((name, path, flags, 3, how))
            questions.append((name, path, flags, 1, "full"))
        text = "".join(f"{p} {c} {how} {folder}/out{i}\n" for i, (_, p, _, c, how) in enumerate(questions))
        done = subprocess.run([probe], input=text, capture_output=True, text=True, timeout=100, check=True)
        answers = done.stdout.splitlines()
        assert len(answers) == len(questions)
        values = different = far = 0
        for i, ((name, path, flags, channels, how), answer) in enumerate(zip(questions, answers)):
            height, width, fault, found, *_ = answer.split(" ")
            assert fault == "ok", (name, answer)
            assert found == flags, (name, found, flags)
            image = upright(Image.open(path)).convert("RGB" if channels == 3 else "L")
            if channels == 1 and name not in ("grey",):
                image = upright(Image.open(path)).convert("RGB").convert("L")
            words = how.split(" ")
            if words[0] == "short":
                side, (w, h) = int(words[1]), image.size
                image = image.resize((side, int(side * h / w)) if w <= h else (int(side * w / h), side), Image.BILINEAR)
            elif words[0] == "to":
                image = image.resize((int(words[2]), int(words[1])), Image.BILINEAR)
            expected = np.asarray(image).astype(int)
            assert expected.shape[:2] == (int(height), int(width)), (name, how, expected.shape, answer)
            ours = np.fromfile(f"{folder}/out{i}", np.uint8).astype(int).reshape(expected.shape)
            gap = np.abs(ours - expected)
            # Pillow rounds to 8 bits between the passes; its new versions sometimes start with the columns.
            values += gap.size
            different += int((gap > 0).sum())
            assert gap.max() <= (0 if how == "full" else 1), (name, how, gap.max(), (gap > 0).mean())
            if how == "to 50 131":
                full = np.asarray(upright(Image.open(path)).convert("RGB"))
                assert (ours == rows_of(columns_of(full, 131), 50)).all(), (name, how)
        print(f"{len(questions)} images, {values} values, {different} differ by 1, none by more")


def deep_and_broken():
    probe = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="convoy-test-") as folder:
        rng = np.random.default_rng(1)
        deep = rng.integers(0, 65536, (40, 30), np.uint16)
        Image.fromarray(deep).save(f"{folder}/deep.png")
        buffer = io.BytesIO()
        Image.fromarray(photo(120, 160, 7)).save(buffer, "JPEG")
        whole = buffer.getvalue()
        buffer = io.BytesIO()
        Image.fromarray(photo(120, 160, 7)).save(buffer, "PNG")
        png = buffer.getvalue()
        kinds = {
            "empty": (b"", "empty"),
            "text": (b"hello, this is no image at all", "not an image"),
            "html": (b"<html>404</html>", "not an image"),
            "gif": (b"GIF89a" + bytes(30), "not an image"),
            "cut": (whole[: len(whole) // 2], "truncated"),
            "head": (whole[:10], "truncated"),
            "late": (whole[:-2], "ok"),  # only its end marker is missing
            "zeros": (whole[:600] + bytes(200) + whole[800:], None),
            "cutpng": (png[: len(png) // 2], "truncated"),
            "badpng": (png[:100] + bytes([png[100] ^ 1]) + png[101:], "damaged"),
            "huge": (whole.replace(b"\x00\x78\x00\xa0", b"\xff\xdb\xff\xdb", 1), "too large"),
            "junk": (whole[:2] + b"\xff\xfe\x00\x04abjunk" + whole[2:], "ok"),
            "trailing": (whole + b"trailing bytes", "ok"),
        }
        text = f"{folder}/deep.png 3 full {folder}/deep.raw\n"
        for name, (data, _) in kinds.items():
            with open(f"{folder}/{name}", "wb") as file:
                file.write(data)
            text += f"{folder}/{name} 3 full {folder}/out\n"
        done = subprocess.run([probe], input=text, capture_output=True, text=True, timeout=100, check=True)
        answers = done.stdout.splitlines()
        assert " deep," in answers[0] or "grey,deep," in answers[0], answers[0]
        ours = np.fromfile(f"{folder}/deep.raw", np.uint8).reshape(40, 30, 3)
        assert (ours == np.floor(deep / 257.0 + 0.5).astype(np.uint8)[:, :, None]).all()
        for (name, (_, fault)), answer in zip(kinds.items(), answers[1:]):
            print(name, answer)
            if fault is not None:
                assert f" {fault} " in answer, (name, answer)
        assert "extraneous" in answers[1 + list(kinds).index("junk")]


main()
deep_and_broken()
