# SPDX-License-Identifier: Apache-2.0
"""convoy-preprocess as users run it, on small raw files made here, read back with h5py. One case an argument."""
import glob
import gzip
import io
import os
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time

import h5py
import numpy as np

PROGRAM = os.environ["CONVOY_PREPROCESS"]


def run(*words, ranks=0, expect=0):
    """ranks = 0: without mpirun."""
    command = [PROGRAM] + [str(w) for w in words]
    if ranks:
        command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks)] + command
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    text = done.stdout + done.stderr
    if done.returncode != expect:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}, expected {expect}\n{text}")
    return text


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")
    print("ok", what, flush=True)


def same_bytes(a, b):
    names = sorted(os.listdir(a))
    check(names == sorted(os.listdir(b)) and names, f"the same {len(names)} names")
    for name in names:
        with open(os.path.join(a, name), "rb") as x, open(os.path.join(b, name), "rb") as y:
            if x.read() != y.read():
                sys.exit(f"FAILED: {a}/{name} and {b}/{name} differ")


# Raw data with known pixels.


def images(count, height, width, channels, seed):
    return np.random.default_rng(seed).integers(0, 256, (count, height, width, channels), np.uint8)


def cifar_record(labels, pixels):
    """Label columns, then planes R, G, B."""
    planes = pixels.transpose(0, 3, 1, 2).reshape(len(pixels), -1)
    return np.concatenate([labels, planes], axis=1).astype(np.uint8)


def write_cifar10(folder):
    os.makedirs(folder)
    raw = {}
    for i, name in enumerate([f"data_batch_{k}.bin" for k in range(1, 6)] + ["test_batch.bin"]):
        count = 41 if name == "test_batch.bin" else 30 + i
        pixels, labels = images(count, 32, 32, 3, i), np.arange(count) * 7 % 10
        cifar_record(labels[:, None], pixels).tofile(os.path.join(folder, name))
        for k in range(count):
            raw[f"{name}/{k}"] = (int(labels[k]), pixels[k])
    with open(os.path.join(folder, "batches.meta.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join("airplane automobile bird cat deer dog frog horse ship truck".split()) + "\n\n")
    return raw


# docs/format.md, written down once more.


def mix(x):
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 % 2**64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def hash_text(text, seed):
    h = 0xCBF29CE484222325 ^ mix(seed)
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return mix(h)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def read_split(folder, split):
    """All partitions joined; checks what each says of itself."""
    paths = sorted(glob.glob(os.path.join(folder, split + "-*.h5")))
    parts = []
    for number, path in enumerate(paths):
        assert os.path.basename(path) == f"{split}-{number:05}-of-{len(paths):05}.h5", path
        with h5py.File(path, "r") as file:
            attributes = dict(file.attrs)
            assert attributes["split"] == split.encode() and attributes["partition"] == number, attributes
            assert attributes["partitions"] == len(paths) and attributes["format_version"] == 1, attributes
            assert attributes["encoding"] == b"raw" and file.userblock_size == 512, attributes
            assert file["images"].chunks is None and file["images"].dtype == np.uint8
            assert (file["labels"].dtype, file["ids"].dtype, file["crc"].dtype) == (np.int32, np.int64, np.uint32)
            data = {name: file[name][()] for name in file}
            assert attributes["samples"] == len(data["images"]) and attributes["first_sample"] == data["ids"][0]
            assert data["crc"][0] == crc32c(data["images"][0].tobytes()), path
            parts.append(data)
    sizes = [len(p["images"]) for p in parts]
    assert max(sizes) - min(sizes) <= 1, sizes
    joined = {n: np.concatenate([p[n] for p in parts]) for n in ("images", "labels", "ids", "crc")}
    assert (joined["ids"] == np.arange(len(joined["ids"]))).all()
    assert attributes["split_samples"] == len(joined["ids"])
    return joined, attributes, parts[0].get("mean_image")


def check_split(folder, split, raw, seed=1):
    """raw: name -> (label, pixels). The order must be that of the hashes."""
    found, attributes, mean_image = read_split(folder, split)
    names = sorted(raw, key=lambda name: (hash_text(name, seed), name))
    check(len(names) == len(found["ids"]), f"{split} has {len(names)} samples")
    for i, name in enumerate(names):
        label, pixels = raw[name]
        if found["labels"][i] != label or (found["images"][i] != pixels).any():
            sys.exit(f"FAILED: {split} sample {i} is not {name}")
    print("ok every pixel and label of", split)
    return attributes, mean_image


def check_normalisation(attributes, raw):
    pixels = np.stack([p for _, p in raw.values()]).reshape(-1, len(attributes["mean"])).astype(np.float64)
    check(np.allclose(attributes["mean"], pixels.mean(0), rtol=1e-12), "mean")
    check(np.allclose(attributes["std"], pixels.std(0), rtol=1e-12), "std")
    if pixels.shape[1] == 3:
        check(np.allclose(attributes["covariance"].reshape(3, 3), np.cov(pixels.T, bias=True), rtol=1e-10), "covariance of the colours")
    else:
        check("covariance" not in attributes, "no covariance without colours")


def pixels_case(work):
    raw = write_cifar10(f"{work}/c10")
    train = {n: v for n, v in raw.items() if n.startswith("data_batch")}
    val = {n: v for n, v in raw.items() if n.startswith("test")}
    run("cifar10", "--source", f"{work}/c10", "--out", f"{work}/o10", "--partitions", 3, "--mean-image")
    attributes, mean_image = check_split(f"{work}/o10", "train", train)
    check_normalisation(attributes, train)
    check(attributes["class_names"][9] == b"truck" and attributes["classes"] == 10, "class names")
    check(np.allclose(mean_image, np.mean([p for _, p in train.values()], axis=0), rtol=1e-6), "mean image")
    attributes, _ = check_split(f"{work}/o10", "val", val)
    check_normalisation(attributes, train)  # of train, in val too
    text = run("inspect", f"{work}/o10")
    check("160 of 32x32x3" in text and "airplane" in text and "mean image  yes" in text, "inspect")

    # The official archive, an inner folder, and the archive in a folder: the same files.
    os.makedirs(f"{work}/packed")
    with tarfile.open(f"{work}/packed/cifar-10-binary.tar.gz", "w:gz") as tar:
        tar.add(f"{work}/c10", "cifar-10-batches-bin")
    shutil.copytree(f"{work}/c10", f"{work}/nested/cifar-10-batches-bin")
    for i, source in enumerate(["packed/cifar-10-binary.tar.gz", "packed", "nested"]):
        out = f"{work}/oa{i}"
        run("cifar10", "--source", f"{work}/{source}", "--out", out, "--partitions", 3, "--mean-image")
        same_bytes(f"{work}/o10", out)

    os.makedirs(f"{work}/c100")
    raw = {}
    for name, count in (("train.bin", 50), ("test.bin", 20)):
        labels = np.stack([np.arange(count) % 20, (np.arange(count) * 3 + 50) % 100], axis=1)
        pixels = images(count, 32, 32, 3, count)
        cifar_record(labels, pixels).tofile(f"{work}/c100/{name}")
        raw[name] = (labels, pixels)
    for words, column, classes in (((), 1, 100), (("--coarse",), 0, 20)):
        out = f"{work}/o100-{column}"
        run("cifar100", "--source", f"{work}/c100", "--out", out, "--partitions", 2, *words)
        for split, name in (("train", "train.bin"), ("val", "test.bin")):
            labels, pixels = raw[name]
            named = {f"{name}/{i}": (labels[i][column], pixels[i]) for i in range(len(pixels))}
            attributes, _ = check_split(out, split, named)
            check(attributes["classes"] == classes, f"{classes} classes")

    idx = {}
    for prefix, count in (("train", 30), ("t10k", 12)):
        pixels, labels = images(count, 28, 28, 1, count), (np.arange(count) * 3 % 10).astype(np.uint8)
        idx[f"{prefix}-images-idx3-ubyte"] = struct.pack(">IIII", 0x803, count, 28, 28) + pixels.tobytes()
        idx[f"{prefix}-labels-idx1-ubyte"] = struct.pack(">II", 0x801, count) + labels.tobytes()
        raw[prefix] = {f"{prefix}-images-idx3-ubyte/{i}": (labels[i], pixels[i]) for i in range(count)}
    for i, spell in enumerate((str, lambda n: n + ".gz", lambda n: n.replace("-idx", ".idx"))):
        os.makedirs(f"{work}/mnist{i}")
        for name, data in idx.items():
            name = spell(name)
            with open(f"{work}/mnist{i}/{name}", "wb") as file:
                file.write(gzip.compress(data) if name.endswith(".gz") else data)
        run("mnist", "--source", f"{work}/mnist{i}", "--out", f"{work}/om{i}", "--partitions", 4, "--seed", 9)
        if i:
            same_bytes(f"{work}/om0", f"{work}/om{i}")
    check_split(f"{work}/om0", "train", raw["train"], seed=9)
    check_split(f"{work}/om0", "val", raw["t10k"], seed=9)


def identical_case(work):
    write_cifar10(f"{work}/c10")
    for ranks in (1, 2, 3):
        run("cifar10", "--source", f"{work}/c10", "--out", f"{work}/c{ranks}", "--partitions", 4, "--mean-image",
            ranks=ranks)
        run("synthetic", "--out", f"{work}/s{ranks}", "--samples", 101, "--val-samples", 17, "--image-size", "12x10",
            "--partitions", 5, ranks=ranks)
        if ranks > 1:
            same_bytes(f"{work}/c1", f"{work}/c{ranks}")
            same_bytes(f"{work}/s1", f"{work}/s{ranks}")
    run("synthetic", "--out", f"{work}/seed", "--samples", 101, "--val-samples", 17, "--image-size", "12x10",
        "--partitions", 5, "--seed", 2)
    with open(f"{work}/s1/train-00000-of-00005.h5", "rb") as a, open(f"{work}/seed/train-00000-of-00005.h5", "rb") as b:
        check(a.read() != b.read(), "another seed gives other bytes")


def restart_case(work):
    words = ("synthetic", "--samples", 6000, "--val-samples", 100, "--partitions", 30)
    run(*words, "--out", f"{work}/whole")
    kept = 0
    for attempt in range(10):
        out = f"{work}/killed{attempt}"
        with subprocess.Popen([PROGRAM, *map(str, words), "--out", out], stdout=subprocess.DEVNULL) as process:
            while len(glob.glob(out + "/*.h5")) < 5 and process.poll() is None:
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            if process.wait() != -signal.SIGKILL:
                continue  # it was faster
        kept = len(glob.glob(out + "/*.h5"))
        if 5 <= kept < 31:
            break
    check(5 <= kept < 31, f"killed with {kept} of 31 partitions done")
    before = {p: os.stat(p).st_mtime_ns for p in glob.glob(out + "/*.h5")}
    for path in before:
        with open(path, "rb") as a, open(os.path.join(work, "whole", os.path.basename(path)), "rb") as b:
            check(a.read() == b.read(), os.path.basename(path) + " is whole")
    text = run(*words, "--out", out, ranks=2)
    check(f"{31 - kept} partitions made, {kept} kept" in text, "the second run makes only what is missing")
    check(all(os.stat(p).st_mtime_ns == t for p, t in before.items()), "and leaves the others alone")
    same_bytes(f"{work}/whole", out)
    # Damage is repaired the same way.
    flip(f"{out}/train-00003-of-00030.h5", 40000)
    os.remove(f"{out}/train-00004-of-00030.h5")
    check("2 partitions made, 29 kept" in run(*words, "--out", out), "damaged and missing partitions are made anew")
    same_bytes(f"{work}/whole", out)


def flip(path, at, mask=0x04):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ mask]))


def verify_case(work):
    run("synthetic", "--out", f"{work}/o", "--samples", 240, "--val-samples", 12, "--image-size", 8, "--partitions", 24)
    check("24 partitions, 240 images: whole" in run("verify", f"{work}/o", ranks=2), "a whole folder")
    first = f"{work}/o/train-00000-of-00024.h5"
    size = os.path.getsize(first)
    with h5py.File(first, "r") as file:
        at = {name: file[name].id.get_offset() for name in ("images", "labels", "ids", "crc")}
    spots = [0, 8, 13, 17, 26, 33, 300, 511, 512, 520, 540, 560, 700, at["labels"], at["labels"] + 39, at["ids"] + 7,
             at["ids"] + 79, at["crc"], at["crc"] + 39, at["images"], at["images"] + 777, at["images"] + 1919,
             size // 2, size - 1]
    for number, spot in enumerate(spots):
        flip(f"{work}/o/train-{number:05}-of-00024.h5", spot)
    text = run("verify", f"{work}/o", ranks=2, expect=3)
    for number, spot in enumerate(spots):
        check(f"train-{number:05}-of-00024.h5'" in text, f"a flipped bit at byte {spot} of {size} is found")
    check("val-" not in text, "whole files are not named")
    check("sample 4 (id 204) is damaged" in text, "a damaged sample is named")
    for number, spot in enumerate(spots):
        flip(f"{work}/o/train-{number:05}-of-00024.h5", spot)
    run("verify", f"{work}/o")
    os.remove(f"{work}/o/train-00009-of-00024.h5")
    check("train-00009-of-00024.h5' is missing" in run("verify", f"{work}/o", expect=3), "a missing file is named")


def errors_case(work):
    write_cifar10(f"{work}/c10")
    words = ("cifar10", "--source", f"{work}/c10", "--out", f"{work}/o", "--partitions", 2)
    text = run(*words, ranks=3, expect=0)
    check(text.count("test_batch.bin' holds") == 1 and text.count("the official file 10000") == 2 and "data_batch_1.bin' holds" in text,
          "unusual sizes of test and train are warnings, once each")
    check("in the way" in run(*words, "--seed", 2, expect=2), "other options are refused")
    run(*words, "--seed", 2, "--overwrite")
    check("in the way" in run(*words, expect=2), "until they are wished for")
    other = ("cifar10", "--source", f"{work}/c10", "--out", f"{work}/o", "--partitions", 3)
    check("in the way" in run(*other, expect=2), "and so is another number of partitions")

    path = f"{work}/c10/data_batch_3.bin"
    size = os.path.getsize(path)
    os.truncate(path, size - 1)
    text = run("cifar10", "--source", f"{work}/c10", "--out", f"{work}/p", ranks=2, expect=3)
    check(f"data_batch_3.bin' has {size - 1} bytes" in text, "a truncated source")
    check(text.count("error:") == 1, "is reported once")
    os.remove(path)
    text = run("cifar10", "--source", f"{work}/c10", "--out", f"{work}/p", expect=3)
    check("data_batch_3.bin' is missing" in text, "a missing source")
    check(not os.path.exists(f"{work}/p"), "nothing was made")

    write_cifar10(f"{work}/bad")
    flip(f"{work}/bad/data_batch_2.bin", 3073 * 5, 0x40)
    text = run("cifar10", "--source", f"{work}/bad", "--out", f"{work}/p", "--partitions", 2, ranks=2, expect=3)
    check("data_batch_2.bin': image 5 has label" in text and "expected 0 to 9" in text, "a label out of range")
    check(not glob.glob(f"{work}/p/**/*.h5*", recursive=True), "no partition was left")

    with tarfile.open(f"{work}/cifar.tar.gz", "w:gz") as tar:
        tar.add(f"{work}/bad", "cifar-10-batches-bin")
    with open(f"{work}/cifar.tar.gz", "rb") as file:
        data = file.read()
    for name, content, what in (
        ("short.tar.gz", data[: len(data) * 2 // 3], "is truncated"),
        ("damaged.tar.gz", data[:-6] + bytes([data[-6] ^ 1]) + data[-5:], "is damaged"),
        ("text.tar.gz", b"<html>not found</html>" * 100, "is damaged or not a tar archive"),
        ("empty.tar.gz", b"", "is truncated"),
    ):
        with open(f"{work}/{name}", "wb") as file:
            file.write(content)
        text = run("cifar10", "--source", f"{work}/{name}", "--out", f"{work}/p", expect=3)
        check(f"{name}' {what}" in text, f"{name}: {what}")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        tar.add(f"{work}/bad/data_batch_1.bin", "cifar-10-batches-bin/data_batch_1.bin")
    with open(f"{work}/part.tar.gz", "wb") as file:
        file.write(buffer.getvalue())
    text = run("cifar10", "--source", f"{work}/part.tar.gz", "--out", f"{work}/p", expect=3)
    check("has no 'data_batch_2.bin'" in text, "an archive without a file")

    os.makedirs(f"{work}/mnist")
    for prefix in ("train", "t10k"):
        for kind, head in (("images-idx3", struct.pack(">IIII", 0x803, 4, 28, 28) + bytes(4 * 784)),
                           ("labels-idx1", struct.pack(">II", 0x801, 4) + bytes(4))):
            with open(f"{work}/mnist/{prefix}-{kind}-ubyte", "wb") as file:
                file.write(head)
    mnist = ("mnist", "--source", f"{work}/mnist", "--out", f"{work}/m", "--partitions", 1)
    run(*mnist)
    os.truncate(f"{work}/mnist/train-images-idx3-ubyte", 1000)
    check("train-images-idx3-ubyte' is truncated or damaged" in run(*mnist, expect=3), "truncated IDX")
    flip(f"{work}/mnist/train-images-idx3-ubyte", 3, 0x02)
    check("not an IDX file" in run(*mnist, expect=3), "another magic")

    check("Not a directory" in run("synthetic", "--out", "/dev/null/x", expect=3), "an unwritable folder")
    check("can't fill 8" in run("synthetic", "--out", f"{work}/few", "--samples", 3, expect=2), "too few samples")
    text = run("synthetic", "--ouput", "x", ranks=2, expect=2)
    check("has no option '--ouput'; did you mean '--output'?" in text and text.count("error:") == 1, "a mistyped option")

    full = f"{work}/full"
    os.makedirs(full)
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", full]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        print("skipped: a full disk (no right to mount a small one)")
        return
    try:
        text = run("synthetic", "--out", full, "--partitions", 4, ranks=2, expect=3)
        check("No space left on device" in text and "make room" in text, "a full disk")
        check(not glob.glob(f"{full}/**/*.tmp", recursive=True), "leaves no half file")
        left = [name for name in os.listdir(full) if name != "unfinished"]
        for name in left:
            with h5py.File(os.path.join(full, name), "r") as file:
                check(len(file["images"]) == 500, name + " is whole")
    finally:
        subprocess.run(["umount", full], check=True)


with tempfile.TemporaryDirectory(prefix="convoy-test-") as folder:
    {"pixels": pixels_case, "identical": identical_case, "restart": restart_case, "verify": verify_case,
     "errors": errors_case}[sys.argv[1]](folder)
