# SPDX-License-Identifier: Apache-2.0
"""convoy-preprocess on image files from every kind of source, read back with h5py. One case an argument."""
import gzip
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
import image_sets as sets  # noqa: E402  (the path is set above)
from preparation import check, prepare, run  # noqa: E402


def expect_split(folder, files, split="train", side=32, seed=1, named=None):
    """Order, labels, pixels and sizes of a raw split against Pillow."""
    found = sets.Split(folder, split)
    names = sorted(files, key=lambda n: sets.order_key(named(n) if named else n, seed))
    assert len(names) == len(found.labels), (len(names), len(found.labels))
    assert [files[n][1] for n in names] == list(found.labels)
    for name, pixels, dimensions in zip(names, found.images, found.dimensions):
        image = sets.decode(files[name][0])
        gap = np.abs(np.asarray(image.resize((side, side), Image.BILINEAR)).astype(int) - pixels)
        assert gap.max() <= 1 and (gap > 0).mean() < 0.5, (name, gap.max(), (gap > 0).mean())
        assert tuple(dimensions) == (image.size[1], image.size[0])
    if found.names is not None:
        assert found.names == [named(n) if named else n for n in names]
    return found


def sources_case(work):
    train, val = sets.make_set(9), sets.make_set(3, first=100)
    sets.write_folder(train, f"{work}/folder/train")
    sets.write_folder(val, f"{work}/folder/val")
    for name, data in sets.class_tars(train).items():
        sets.write(f"{work}/tars/{name}.tar", data)
    outer = sets.tar_of([(f"{name}.tar", data) for name, data in sets.class_tars(train).items()])
    flat = [(f"ILSVRC2012_val_{i + 1:08}.JPEG", d, c) for i, (d, c) in enumerate(val.values())]
    sets.write(f"{work}/official/ILSVRC2012_img_train.tar", outer)
    sets.write(f"{work}/official/ILSVRC2012_img_val.tar", sets.tar_of([(n, d) for n, d, _ in flat]))
    sets.write(f"{work}/official/imagenet_2012_validation_synset_labels.txt",
               "".join(f"{sets.CLASSES[c]}\n" for _, _, c in flat))
    options = ("--sizes", 32, "--keep-names", "--partitions", 3, "--val-partitions", 2)

    prepare(work, "o1", "folder", "--source", f"{work}/folder", *options)
    whole = expect_split(f"{work}/o1", train)
    expect_split(f"{work}/o1", val, "val")
    check(whole.classes == sets.CLASSES and whole.sizes == [12, 12, 12], "class folders")
    pixels = whole.images.reshape(-1, 3).astype(np.float64)
    check(np.allclose(whole.attributes["mean"], pixels.mean(0), atol=1e-9) and
          np.allclose(whole.attributes["std"], pixels.std(0), atol=1e-9), "mean and deviation")

    prepare(work, "o2", "imagenet", "--source", f"{work}/official", *options, ranks=2)
    same = sets.Split(f"{work}/o2")
    check(same.names == whole.names and (same.images == whole.images).all(), "the tar of tars is the same images")
    expect_split(f"{work}/o2", {n: (d, c) for n, d, c in flat}, "val")
    print("ok the flat validation archive with its label file", flush=True)

    prepare(work, "o3", "folder", "--train", f"{work}/tars", *options[:-2])
    check(sets.Split(f"{work}/o3").names == whole.names, "a folder of class archives")
    lines = "".join(f"{name} {3 - c}\n" for name, (_, c) in train.items())
    sets.write(f"{work}/train.txt", lines)
    prepare(work, "o4", "folder", "--train", f"{work}/tars", "--label-file", f"{work}/train.txt", "--key-prefix", "n014",
            *options[:-2])
    some = sets.Split(f"{work}/o4")
    expected = {n: 3 - c for n, (_, c) in train.items() if n.startswith("n014")}
    check(dict(zip(some.names, some.labels)) == expected and some.classes == [f"class-{i}" for i in range(4)],
          "class archives with a prefix and a label file")

    packed = [(f"train/{n}", d) for n, (d, _) in train.items()]
    sets.write(f"{work}/one.tar.gz", gzip.compress(sets.tar_of(packed, format=1), 1))
    prepare(work, "o5", "folder", "--train", f"{work}/one.tar.gz", *options[:-2])
    expect_split(f"{work}/o5", train, named=lambda n: f"train/{n}")
    print("ok one compressed archive with class folders", flush=True)

    items = list(train.items())
    for s in range(3):
        members = []
        for i, (_, (data, c)) in list(enumerate(items))[s::3]:
            members += [(f"{i:08}.cls", str(c).encode()), (f"{i:08}.jpg", data), (f"{i:08}.json", b"{}")]
        sets.write(f"{work}/wds/train-{s:06}.tar", sets.tar_of(members))
    prepare(work, "o6", "webdataset", "--train", f"{work}/wds/train-{{000000..000002}}.tar", *options[:-2], ranks=2)
    keys = {n: f"train-{i % 3:06}/{i:08}" for i, (n, _) in enumerate(items)}
    expect_split(f"{work}/o6", train, named=lambda n: keys[n])
    print("ok webdataset shards", flush=True)

    rec, index, offsets = b"", "", {}
    for i, (name, (data, c)) in enumerate(items):
        offsets[name] = f"train/{i}@{len(rec)}"
        index += f"{i}\t{len(rec)}\n"
        # One holds the magic on a word's border: the payload is cut there.
        tail = b"\x00" * (-(24 + len(data)) % 4) + struct_magic() + b"tail" if i % 5 == 0 else b""
        rec += sets.record(float(c), i, data + tail) if i % 2 else sets.record(0, i, data + tail, labels=(float(c), 7.0))
    sets.write(f"{work}/rec/train.rec", rec)
    sets.write(f"{work}/rec/train.idx", index)
    prepare(work, "o7", "recordio", "--train", f"{work}/rec/train.rec", *options[:-2], ranks=2)
    expect_split(f"{work}/o7", train, named=lambda n: offsets[n])
    print("ok MXNet records", flush=True)

    listed = "".join(f"{i}\t{c}.000\t{n}\n" for i, (n, (_, c)) in enumerate(items) if i % 2)
    sets.write(f"{work}/train.lst", listed)
    prepare(work, "o8", "list", "--train", f"{work}/train.lst", "--root", f"{work}/folder/train", *options[:-2])
    expect_split(f"{work}/o8", {n: v for i, (n, v) in enumerate(items) if i % 2})
    print("ok a list", flush=True)


def splits_case(work):
    """Splits that one place holds: an archive is told apart as the folder is, byte for byte."""
    train, val = sets.make_set(5), sets.make_set(3, first=100)
    members = [(f"val/{n}", d) for n, (d, _) in val.items()] + [(f"train/{n}", d) for n, (d, _) in train.items()]
    sets.write_folder(train, f"{work}/folder/train")
    sets.write_folder(val, f"{work}/folder/val")
    for split, files in (("train", train), ("val", val)):
        sets.write(f"{work}/two/{split}.tar", sets.tar_of([(n, d) for n, (d, _) in files.items()]))
    inner = [(f"{s}/{n}.tar", d) for s, files in (("train", train), ("val", val)) for n, d in sets.class_tars(files).items()]
    mixed = members[::2] + members[1::2]  # the splits take turns
    archives = {"plain.tar": sets.tar_of(mixed), "packed.tar.gz": gzip.compress(sets.tar_of(members), 1), "inner.tar": sets.tar_of(inner),
                "deep.tar": sets.tar_of([("set/readme.txt", b"words")] + [(f"set/{n}", d) for n, d in members])}
    for name, data in archives.items():
        sets.write(f"{work}/{name}", data)
    options = ("--sizes", 32, "--keep-names", "--partitions", 2, "--val-partitions", 1)
    prepare(work, "folder-out", "folder", "--source", f"{work}/folder", *options)
    expect_split(f"{work}/folder-out", train)
    expect_split(f"{work}/folder-out", val, "val")
    expected = sets.digest(f"{work}/folder-out")
    for name in (*archives, "two"):
        prepare(work, f"{name}-out", "folder", "--source", f"{work}/{name}", *options, ranks=2 if name == "plain.tar" else 0)
        check(sets.digest(f"{work}/{name}-out") == expected, f"{name}: train and val as in the folder")
    for name in ("plain.tar", "packed.tar.gz", "inner.tar"):
        text = run("folder", "--train", f"{work}/{name}", "--out", f"{work}/refused", *options, expect=2)
        check("several splits (train, val)" in text and "--source" in text, f"--train {name}: refused")

    tested = [(n.replace("val/", "test/"), d) for n, d in members]
    sets.write(f"{work}/tested.tar", sets.tar_of(tested))
    sets.write_folder(train, f"{work}/tested/train")
    sets.write_folder(val, f"{work}/tested/test")
    for name in ("tested.tar", "tested"):
        text = prepare(work, f"{name}-out", "folder", "--source", f"{work}/{name}", *options)
        check("its 'test' becomes it" in text and sets.digest(f"{work}/{name}-out") == expected, f"{name}: test is val where there is none")
    text = prepare(work, "cut", "folder", "--source", f"{work}/tested.tar", *options, "--train-ratio", 0.9)
    check("'test' in" in text and "is not read" in text, "which --train-ratio leaves out, and says so")
    check(len(sets.Split(f"{work}/cut").labels) + len(sets.Split(f"{work}/cut", "val").labels) == len(train), "val is cut from train")
    run("folder", "--source", f"{work}/plain.tar", "--out", f"{work}/none", "--train-ratio", 0.9, expect=2)
    print("ok --train-ratio with a val split is refused", flush=True)


def struct_magic():
    return b"\x0a\x23\xd7\xce"


def modes_case(work):
    files = sets.make_set(6, side=80)
    sets.write_folder(files, f"{work}/in")
    base = ("folder", "--train", f"{work}/in", "--keep-names")
    prepare(work, "crop", *base, "--sizes", "48,32", "--resize", "crop", "--mean-image", "--partitions", 2)
    for side in (48, 32):
        found = sets.Split(f"{work}/crop/{side}")
        for name, pixels in zip(found.names, found.images):
            image = sets.decode(files[name][0])
            w, h = image.size
            size = (side, int(side * h / w)) if w <= h else (int(side * w / h), side)
            resized = image.resize(size, Image.BILINEAR)
            left, top = round((size[0] - side) / 2), round((size[1] - side) / 2)
            expected = np.asarray(resized.crop((left, top, left + side, top + side)))
            assert np.abs(expected.astype(int) - pixels).max() <= 1, name
        assert np.allclose(found.mean_image, found.images.mean(0), atol=1e-4)
    print("ok two sizes in one pass, cropped, with mean images", flush=True)

    prepare(work, "pass", *base, "--encoding", "jpeg", "--sizes", "full,40")
    full, small = sets.Split(f"{work}/pass/full"), sets.Split(f"{work}/pass/40")
    check(all(data == files[name][0] for name, data in zip(full.names, full.images)), "JPEG files pass as they are")
    check(small.names == full.names, "in the same order in every size")
    for name, data, dimensions in zip(small.names, small.images, small.dimensions):
        image, original = sets.decode(data), sets.decode(files[name][0])
        assert min(image.size) == 40 and image.size == tuple(dimensions[::-1])
        twin = sets.decode(sets.jpeg(original.resize(image.size, Image.BILINEAR), quality=95))
        gap = np.abs(np.asarray(image).astype(int) - np.asarray(twin))
        assert gap.mean() < 1, (name, gap.mean())
    pixels = np.concatenate([np.asarray(sets.decode(d)).reshape(-1, 3) for d in full.images]).astype(np.float64)
    check(np.allclose(full.attributes["mean"], pixels.mean(0), atol=1e-9), "shrunk ones are encoded anew; their mean")

    prepare(work, "some", *base, "--encoding", "jpeg", "--max-resolution", 105, "--compress-probability", 0.5,
            "--quality", 60)
    found = sets.Split(f"{work}/some")
    large = {n for n, (d, _) in files.items() if max(sets.decode(d).size) > 105}
    kept = {n for n, d in zip(found.names, found.images) if d == files[n][0]}
    check(max(found.dimensions.max(1)) == 105 and not kept & large, "--max-resolution")
    check(0 < len(kept) < len(files) - len(large), f"--compress-probability: {len(kept)} of {len(files) - len(large)}")

    prepare(work, "grey", *base, "--color", "grey", "--sizes", "32", "--train-ratio", 0.75, "--maxcount", 5)
    train, val = sets.Split(f"{work}/grey"), sets.Split(f"{work}/grey", "val")
    check(train.images.shape == (18, 32, 32, 1) and len(val.labels) == 6, "--color grey, --train-ratio")
    check(train.sizes == [5, 5, 4, 4] and val.sizes == [3, 3], "--maxcount")
    check(train.names + val.names == sorted(files, key=sets.order_key), "val is what comes after train")

    sets.write(f"{work}/classes", "n02085620 chihuahua\nn01440764 tench, fish\n")
    text = prepare(work, "few", *base, "--sizes", 16, "--subset", 7, "--classes", f"{work}/classes", "--seed", 5)
    found = sets.Split(f"{work}/few")
    wanted = {n: 0 if n.startswith("n02085620") else 1 for n in files if n[:9] in ("n02085620", "n01440764")}
    order = sorted(wanted, key=lambda n: sets.order_key(n, 5))[:7]
    check(found.names == order and list(found.labels) == [wanted[n] for n in order], "--subset and --classes")
    check(found.classes == ["n02085620 chihuahua", "n01440764 tench, fish"] and "12 images read" in text, "class names")
    check("class mix" in run("inspect", f"{work}/few"), "inspect")
    check("jpeg encoding" in run("inspect", f"{work}/pass/full"), "inspect of JPEG files")


def ranks_case(work):
    files = sets.make_set(24)
    sets.write_folder(files, f"{work}/in")
    for name, data in sets.class_tars(files).items():
        sets.write(f"{work}/tars/{name}.tar", data)
    base = ("--sizes", "200,32", "--partitions", 7, "--memory", 16, "--train-ratio", 0.9, "--threads")  # runs of 8 MB: several a rank
    prepare(work, "one", "folder", "--train", f"{work}/in", *base, 1)
    expected = sets.digest(f"{work}/one")
    check(len(expected) == 17, "seven partitions and one of val in two sizes, and the report")
    for ranks, threads, source in ((4, 1, "in"), (2, 2, "tars")):
        out = f"r{ranks}{threads}"
        prepare(work, out, "folder", "--train", f"{work}/{source}", *base, threads, ranks=ranks)
        check(sets.digest(f"{work}/{out}") == expected, f"{ranks} ranks with {threads} threads: the same bytes")
    text = run("verify", f"{work}/one", ranks=3)
    check(all(f"{size}/{split}: {n} partition{'s' * (n > 1)}, " in text for size in (200, 32) for split, n in (("train", 7), ("val", 1))),
          "verify looks at all sizes")
    text = run("inspect", f"{work}/one")
    check("200/train" in text and "32/val" in text, "inspect too")
    with open(f"{work}/one/32/train-00003-of-00007.h5", "r+b") as file:
        file.seek(-3, os.SEEK_END)
        byte = file.read(1)
        file.seek(-3, os.SEEK_END)
        file.write(bytes([byte[0] ^ 16]))
    text = run("verify", f"{work}/one", ranks=2, expect=3)
    check("32/train-00003-of-00007.h5'" in text and "is not whole" in text, "and finds a flipped bit in one of them")
    text = prepare(work, "one", "folder", "--train", f"{work}/in", *base, 2)
    check("1 partition made, 15 kept" in text and sets.digest(f"{work}/one") == expected, "which is made anew")
    text = prepare(work, "one", "folder", "--train", f"{work}/in", *base, 2)
    check("nothing to do" in text and "by name" not in text, "what is done is kept")
    os.remove(f"{work}/one/200/train-00003-of-00007.h5")
    text = prepare(work, "one", "folder", "--train", f"{work}/in", *base, 2, ranks=2)
    check("1 partition made, 15 kept" in text and sets.digest(f"{work}/one") == expected, "what is missing is made")
    prepare(work, "four", "folder", "--train", f"{work}/in", "--sizes", 32, "--partitions", 4, "--val-partitions", 4,
            "--train-ratio", 0.8, "--threads", 1, ranks=7)
    for data, ranks, size in (("one/32", 4, "7 partitions on 4 ranks"), ("four", 7, "4 partitions on 7 ranks")):
        words = ("train", "--data", f"{work}/{data}", "--model", "mlp", "--epochs", 1, "--batch-size", 4, "--threads", 1,
                 "--output-dir", f"{work}/run-{ranks}", "--max-steps", 2, "--no-tensorboard")
        run(*words, ranks=ranks, program=os.environ["CONVOY"])
        print("ok", size, flush=True)


def peak_megabytes(*words):
    """Resident memory of one run at its largest. (What wait4 says of it starts with this process's own.)"""
    peak = 0
    with subprocess.Popen([str(w) for w in words], stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
                if os.path.basename(words[0])[:15] == file.readline().split()[1]:
                    peak = max([peak] + [int(line.split()[1]) for line in file if line.startswith("VmHWM")])
            time.sleep(0.01)
    check(process.returncode == 0 and peak > 0, f"{' '.join(str(w) for w in words[:3])}: {peak // 1024} MB at most")
    return peak / 1024


def memory_case(work):
    """Data more than ten times as large as the memory allowed: what a run holds does not grow with them."""
    allowed, side = 16, 256
    image = sets.jpeg(sets.photo(1, 120, 160), quality=80)
    prepared, trained = [], []
    for name, count in (("small", 60), ("large", 960)):
        for i in range(count):
            sets.write(f"{work}/{name}/{'ab'[i % 2]}/{i}.jpg", image)
        out = f"{work}/{name}-out"
        prepared.append(peak_megabytes(os.environ["CONVOY_PREPROCESS"], "folder", "--train", f"{work}/{name}", "--sizes", side,
                                       "--threads", 1, "--memory", allowed, "--partitions", 4, "--out", out))
        trained.append(peak_megabytes(os.environ["CONVOY"], "bench", "io", "--data", out, "--data-memory", allowed, "--batch-size",
                                      8, "--workers", 1, "--steps", 40, "--shuffle", "global"))
    stored = 960 * side * side * 3 / (1 << 20)
    assert stored > 10 * allowed
    check(prepared[1] - prepared[0] < 2 * allowed, f"preparing {stored:.0f} MB takes {prepared[1] - prepared[0]:.0f} MB more than 11 MB")
    check(trained[1] - trained[0] < 2 * allowed, f"so does reading them: {trained[1] - trained[0]:.0f} MB")


with tempfile.TemporaryDirectory(prefix="convoy-test-") as folder:
    {"memory": memory_case, "sources": sources_case, "splits": splits_case, "modes": modes_case, "ranks": ranks_case}[sys.argv[1]](folder)
