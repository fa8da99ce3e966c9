# SPDX-License-Identifier: Apache-2.0
"""Data sets as people bring them: each becomes the set that it means, from a folder and from an archive, or is refused. One case an
argument."""
import gzip
import io
import os
import random
import sys
import tarfile
import tempfile
import unicodedata

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
import image_sets as sets  # noqa: E402  (the path is set above)
from preparation import check, prepare  # noqa: E402

OPTIONS = ("--sizes", 8, "--keep-names")
PICTURES = [sets.jpeg(sets.photo(i, 20, 24)) for i in range(12)]
GREY = {level: sets.jpeg(sets.Image.new("RGB", (16, 16), (level,) * 3)) for level in (0, 90, 255)}


def named(split):
    """name -> class name"""
    return {name: split.classes[label] for name, label in zip(split.names, split.labels)}


def write_tree(folder, files):
    for name, data in files.items():
        sets.write(f"{folder}/{name}", data)


def both(work, files, expected, *words):
    """The tree as folder and as plain and compressed archive, on 1 and 3 ranks: {split: {name: class}}; returns what was printed."""
    write_tree(f"{work}/tree", files)
    for name, mode in (("tree.tar", "w"), ("tree.tar.gz", "w:gz")):
        with open(f"{work}/{name}", "wb") as file:
            file.write(sets.tar_of([(n, d.encode() if isinstance(d, str) else d) for n, d in files.items()], mode))
    texts = []
    for source, ranks in (("tree", 0), ("tree", 3), ("tree.tar", 0), ("tree.tar", 3), ("tree.tar.gz", 0)):
        out = f"o-{source}-{ranks}"
        texts.append(prepare(work, out, "folder", "--source", f"{work}/{source}", *OPTIONS, *words, ranks=ranks))
        for split, classes in expected.items():
            found = named(sets.Split(f"{work}/{out}", split))
            check({os.path.basename(n): c for n, c in found.items()} == classes, f"{source}, {ranks} ranks, {split}")
    return texts


def labels_case(work):
    for i in range(1, 7):
        sets.write(f"{work}/train/{i}.jpg", PICTURES[i])
    sets.write(f"{work}/kaggle.csv", "id,label\n" + "".join(f"{i},{('frog', 'deer')[i % 2]}\n" for i in range(1, 7)))
    sets.write(f"{work}/plain.csv", "".join(f"{i}.jpg;{('frog', 'deer')[i % 2]}\n" for i in range(1, 7)))
    for table in ("kaggle.csv", "plain.csv"):
        for ranks in (0, 3):
            prepare(work, f"{table}-{ranks}", "folder", "--train", f"{work}/train", "--label-file", f"{work}/{table}", *OPTIONS, ranks=ranks)
            check(named(sets.Split(f"{work}/{table}-{ranks}")) == {f"{i}.jpg": ("frog", "deer")[i % 2] for i in range(1, 7)}, table)
    sets.write(f"{work}/wide.csv", "1.jpg,2024-01-01,frog\n")
    text = prepare(work, "wide", "folder", "--train", f"{work}/train", "--label-file", f"{work}/wide.csv", *OPTIONS, ranks=3, expect=3)
    check("wide.csv', line 1: which of its 3 fields is the label is not clear" in text and text.count("error:") == 1, "an unclear table")

    for i in range(12):
        sets.write(f"{work}/numbers/train/{i}/a.jpg", PICTURES[i])
        sets.write(f"{work}/numbers/val/v{i}.jpg", PICTURES[i])
    sets.write(f"{work}/numbers.txt", "".join(f"v{i}.jpg {i}\n" for i in range(12)))
    for ranks in (0, 3):
        prepare(work, f"numbers-{ranks}", "folder", "--train", f"{work}/numbers/train", "--val", f"{work}/numbers/val", "--val-labels",
                f"{work}/numbers.txt", *OPTIONS, ranks=ranks)
        check(named(sets.Split(f"{work}/numbers-{ranks}", "val")) == {f"v{i}.jpg": str(i) for i in range(12)}, "numbers that are names")

    for i, name in enumerate(("cat", "dog", "emu", "#1 fan", "#99 tunes")):
        sets.write(f"{work}/hash/{name}/{i}.jpg", PICTURES[i])
    os.makedirs(f"{work}/hash/bird")
    text = prepare(work, "hash", "folder", "--train", f"{work}/hash", *OPTIONS)
    split = sets.Split(f"{work}/hash")
    check(named(split) == {f"{n}/{i}.jpg": n for i, n in enumerate(("cat", "dog", "emu", "#1 fan", "#99 tunes"))}, "names that begin with #")
    check(split.classes == ["#1 fan", "#99 tunes", "bird", "cat", "dog", "emu"], "an empty class keeps its number")
    check("1 of 6 classes have no image in train: bird" in text, "and is told")

    shard = [("1.jpg", PICTURES[1]), ("1.cls", b"\xef\xbb\xbf 1\r\n"), ("2.jpg", PICTURES[2]), ("2.cls", b"3d-printer"), ("3.jpg", PICTURES[3]),
             ("3.cls", b"-1")]
    sets.write(f"{work}/shard.tar", sets.tar_of(shard))
    sets.write(f"{work}/classes", "lamp\nchair\n3d-printer\n")
    text = prepare(work, "shard", "webdataset", "--train", f"{work}/shard.tar", "--classes", f"{work}/classes", *OPTIONS)
    check(named(sets.Split(f"{work}/shard")) == {"shard/1": "chair", "shard/2": "3d-printer"}, "a number is one only as a whole")
    check("no label" in text, "-1 is no label")


def layouts_case(work):
    classes = {"1.jpg": "cat", "2.jpg": "dog"}
    tree = {"cat/1.jpg": PICTURES[1], "dog/2.jpg": PICTURES[2]}
    for train, val in (("Train", "Val"), ("TRAIN", "validation"), ("training", "Testing")):
        both(f"{work}/{train}", {f"{s}/{n}": d for s in (train, val) for n, d in tree.items()}, {"train": classes, "val": classes})
    both(f"{work}/deep", {f"set/deep/{n}": d for n, d in tree.items()}, {"train": classes})  # levels too many
    both(f"{work}/deeper", {f"set/{s}/{n}": d for s in ("train", "val") for n, d in tree.items()}, {"train": classes, "val": classes})
    both(f"{work}/images", {f"{os.path.dirname(n)}/images/{n[4:]}": d for n, d in tree.items()}, {"train": classes})
    both(f"{work}/sub", {"cat/a/1.jpg": PICTURES[1], "cat/b/3.jpg": PICTURES[3], "dog/2.jpg": PICTURES[2]}, {"train": {**classes, "3.jpg": "cat"}})
    both(f"{work}/locomotive", {**tree, "train/3.jpg": PICTURES[3]}, {"train": {**classes, "3.jpg": "train"}})  # a class, no split
    hidden = {f"{n}/x.jpg": PICTURES[5] for n in ("@eaDir", "cat/@eaDir", "$RECYCLE.BIN", "__MACOSX/cat", "lost+found", ".thumbs")}
    both(f"{work}/hidden", {**tree, **hidden}, {"train": classes})
    texts = both(f"{work}/others", {**tree, "cat/3.gif": b"x", "dog/4.gif": b"x", "dog/notes.TXT": b"x"}, {"train": classes})
    check(all("files that are not read: 2 .gif, 1 .txt" in text for text in texts), "files of other extensions are counted")
    text = both(f"{work}/lacks", {**{f"train/{n}": d for n, d in tree.items()}, "val/cat/1.jpg": PICTURES[1], "val/emu/4.jpg": PICTURES[4]},
                {"val": {"1.jpg": "cat", "4.jpg": "emu"}})[0]
    check("1 of 3 classes have no image in train: emu" in text, "a class of val that train lacks")

    tiny = {f"train/n0{k}/images/{k}.jpg": PICTURES[k] for k in range(3)} | {f"val/images/v{k}.jpg": PICTURES[k] for k in range(3)}
    table = "".join(f"v{k}.jpg\tn0{k}\t0\t0\t39\t39\n" for k in range(3))
    tiny = {f"tiny/{name}": data for name, data in {**tiny, "val/val_annotations.txt": table, "test/images/9.jpg": PICTURES[9]}.items()}
    names = {split: {f"{letter}{k}.jpg": f"n0{k}" for k in range(3)} for split, letter in (("train", ""), ("val", "v"))}
    both(f"{work}/tiny", tiny, names)
    flat = {"train/cat/1.jpg": PICTURES[1], "train/dog/2.jpg": PICTURES[2], "val/3.jpg": PICTURES[3]}
    sets.write(f"{work}/flat.tar", sets.tar_of(flat.items()))
    text = prepare(work, "flat", "folder", "--source", f"{work}/flat.tar", *OPTIONS, expect=3, ranks=3)
    check("flat.tar:val' holds images without class folders" in text and text.count("error:") == 1, "images without class folders")

    yolo = {f"data/images/{n}": d for n, d in tree.items()} | {"data/labels/1.txt": "x", "readme.txt": "x"}
    texts = both(f"{work}/beside", yolo, {"train": classes})
    check(all("data' is not read, but for the classes in its 'images'" in text for text in texts), "what lies beside images is told")
    texts = both(f"{work}/loose", {**tree, "3.jpg": PICTURES[3]}, {"train": classes})
    check(all("1 images beside the class folders" in text for text in texts), "images beside the class folders are counted")
    deep = {f"a/set/{s}/{n}": d for s in ("train", "val") for n, d in tree.items()} | {"a/readme.jpg": PICTURES[9], "b/x.jpg": PICTURES[9]}
    both(f"{work}/elsewhere", deep, {"train": classes, "val": classes})
    write_tree(f"{work}/twice", {f"{part}/{s}/{n}": d for part in "ab" for s in ("train", "val") for n, d in tree.items()})
    text = prepare(work, "twice-out", "folder", "--source", f"{work}/twice", *OPTIONS, expect=2, ranks=3)
    check("holds splits in several folders ('a', 'b')" in text and text.count("error:") == 1, "splits in several places are refused")
    texts = both(f"{work}/alone", {"set/1.jpg": PICTURES[1], "set/2.jpg": PICTURES[2]}, {"train": {"1.jpg": "set", "2.jpg": "set"}})
    check(all("all images of train are of one class ('set')" in text for text in texts), "one class alone is told")
    forms = [unicodedata.normalize(form, "Käse") for form in ("NFC", "NFD")]
    alike = {"train": (forms[0], "Cat"), "val": (forms[1], "cat ")}
    texts = both(f"{work}/alike", {f"{s}/{n}/{i}.jpg": PICTURES[i] for s, two in alike.items() for i, n in enumerate(two)},
                 {s: {f"{i}.jpg": n for i, n in enumerate(two)} for s, two in alike.items()})
    check(all(text.count("two classes look alike") == 2 for text in texts), "names that differ by Unicode form, case or blanks are told")
    text = prepare(work, "mixed", "folder", "--train", f"{work}/deeper/tree/set", *OPTIONS, expect=2)
    check("holds several splits (train, val)" in text, "several splits as one are refused")
    sets.write(f"{work}/mixed.tar", sets.tar_of([(f"{s}/{n}", d) for s in ("train", "val") for n, d in tree.items()]))
    text = prepare(work, "mixed", "folder", "--train", f"{work}/mixed.tar", *OPTIONS, expect=2)
    check("mixed.tar' holds several splits (train, val)" in text, "in an archive too")


def archives_case(work):
    first, second = (sets.tar_of([(f"c{k}/a.jpg", PICTURES[k]) for k in numbers]) for numbers in ((0, 1), (2, 3)))
    classes = {f"c{k}/a.jpg": f"c{k}" for k in range(4)}
    sets.write(f"{work}/both.tar", first + second)
    sets.write(f"{work}/both.tar.gz", gzip.compress(first) + gzip.compress(second))
    for archive in ("both.tar", "both.tar.gz"):
        for ranks in (0, 3):
            prepare(work, f"o-{archive}-{ranks}", "folder", "--source", f"{work}/{archive}", *OPTIONS, ranks=ranks)
            check(named(sets.Split(f"{work}/o-{archive}-{ranks}")) == classes, f"{archive}: one archive behind the other")
    with tarfile.open(f"{work}/links.tar", "w") as tar:
        for k in (0, 1):
            sets.add(tar, f"train/c{k}/a.jpg", PICTURES[k])
        for k, kind, target in ((0, tarfile.LNKTYPE, "train/c0/a.jpg"), (1, tarfile.SYMTYPE, "../../train/c1/a.jpg")):
            info = tarfile.TarInfo(f"val/c{k}/a.jpg")
            info.type, info.linkname = kind, target
            tar.addfile(info)
    with open(f"{work}/links.tar", "rb") as file:
        sets.write(f"{work}/links.tar.gz", gzip.compress(file.read()))
    for name, ranks in (("links.tar", 0), ("links.tar", 3), ("links.tar.gz", 0), ("links.tar.gz", 3)):
        out = f"o-{name}-{ranks}"
        prepare(work, out, "folder", "--source", f"{work}/{name}", *OPTIONS, ranks=ranks)
        train, val = (sets.Split(f"{work}/{out}", split) for split in ("train", "val"))
        check(named(train) == named(val) == {f"c{k}/a.jpg": f"c{k}" for k in (0, 1)}, f"{name}: a split of links")
        images = dict(zip(train.names, train.images))
        check(all((images[name] == image).all() for name, image in zip(val.names, val.images)), "has the images to which they lead")
    inner = []
    for k in (0, 1):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            sets.add(tar, "a.jpg", PICTURES[k])
            info = tarfile.TarInfo("b.jpg")
            info.type, info.linkname = tarfile.LNKTYPE, "a.jpg"
            tar.addfile(info)
        inner.append((f"c{k}.tar", buffer.getvalue()))
    sets.write(f"{work}/inner.tar", sets.tar_of(inner))
    prepare(work, "o-inner", "folder", "--source", f"{work}/inner.tar", *OPTIONS, ranks=3)
    split = sets.Split(f"{work}/o-inner")
    images = dict(zip(split.names, split.images))
    check(sorted(images) == ["c0/a.jpg", "c0/b.jpg", "c1/a.jpg", "c1/b.jpg"] and
          all((images[f"c{k}/a.jpg"] == images[f"c{k}/b.jpg"]).all() for k in (0, 1)), "links in archives of an archive")

    for name, k in (("a.tarfish.tar", 1), ("a.tarpon.tar", 2)):
        sets.write(f"{work}/dots/{name}", sets.tar_of([("x.jpg", PICTURES[k])]))
    prepare(work, "o-dots", "folder", "--train", f"{work}/dots", *OPTIONS)
    check(named(sets.Split(f"{work}/o-dots")) == {"a.tarfish/x.jpg": "a.tarfish", "a.tarpon/x.jpg": "a.tarpon"}, ".tar within a name")
    for k in (0, 1):
        sets.write(f"{work}/numbered/x.tar-00000{k}", sets.tar_of([("1.jpg", PICTURES[k]), ("1.cls", str(k).encode())]))
    prepare(work, "o-numbered", "webdataset", "--train", f"{work}/numbered", *OPTIONS)
    split = sets.Split(f"{work}/o-numbered")
    check(dict(zip(split.names, split.labels)) == {"x-000000/1": 0, "x-000001/1": 1}, "numbers behind .tar")

    shards = {"mask": [("1.mask.png", sets.png(sets.Image.new("RGB", (16, 16)))), ("1.jpg", GREY[255]), ("1.cls", b"0")],
              "mixed": [("1.jpg", GREY[255]), ("1.cls", b"0"), ("1.jpg", GREY[0]), ("2.jpg", GREY[90]), ("2.cls", b"1")],
              "twice": [("1.jpg", GREY[255]), ("1.cls", b"0"), ("1.jpg", GREY[0]), ("1.cls", b"1")]}
    expected = {"mask": {1: (255, 0)}, "mixed": {1: (255, 0), 2: (90, 1)}, "twice": {1: (255, 0)}}
    for name, members in shards.items():
        sets.write(f"{work}/{name}.tar", sets.tar_of(members))
        for ranks in (0, 3):
            out = f"o-{name}-{ranks}"
            text = prepare(work, out, "webdataset", "--train", f"{work}/{name}.tar", *OPTIONS, ranks=ranks)
            split = sets.Split(f"{work}/{out}")
            found = {int(n.split("/")[1]): (round(float(i.mean())), l) for n, i, l in zip(split.names, split.images, split.labels)}
            check(found == expected[name] and "further files" in text, f"the first image of a key counts ({name}, {ranks} ranks)")


def grow(seed, folder):
    """A tree as people have them, by chance: splits or none, levels, empty classes, links, odd names, what systems leave."""
    draw = random.Random(seed)
    names = draw.sample(["cat", "Dog", "#1 fan", "a b", "käse", "007", "images of x", "x.y", "-", "new\nline", "train of thought"], draw.randint(2, 5))
    root = os.path.join(folder, *draw.choice([(), ("set",), ("set", "deep")]))
    pictures = []
    for split in draw.choice([("",), ("train", "val"), ("Train", "TEST"), ("training", "validation", "test")]):
        place = os.path.join(root, split)
        for name in names:
            for i in range(draw.randint(1, 3)):
                path = os.path.join(place, name, *draw.choice([(), ("images",), ("sub", "sub")]), f"{draw.choice('ab')}{i}.jpg")
                os.makedirs(os.path.dirname(path), exist_ok=True)
                kind = draw.choice(["file"] * 3 + ["hard", "symbolic"]) if pictures else "file"
                if os.path.exists(path):
                    continue
                if kind == "hard":
                    os.link(draw.choice(pictures), path)
                elif kind == "symbolic":
                    os.symlink(os.path.relpath(draw.choice(pictures), os.path.dirname(path)), path)
                else:
                    sets.write(path, draw.choice(PICTURES))
                    pictures.append(path)
            for other in draw.sample(["notes.txt", "x.gif", "README", ".hidden.jpg", "@eaDir/x.jpg", "damaged.jpg"], 2):
                sets.write(os.path.join(place, name, other), b"x")
        for other in draw.sample(["loose.jpg", "notes.txt", "__MACOSX/x.jpg", ".git/x.jpg", "lost+found/cat/x.jpg"], 2):
            sets.write(os.path.join(place, other), PICTURES[11])
        os.makedirs(os.path.join(place, "empty"))


def same_case(work):
    for seed in range(8):
        grow(seed, f"{work}/{seed}")
        found = []
        for source, mode, ranks in (("", None, 0), (".tar", "w", seed % 2 * 3), (".tar.gz", "w:gz", 0)):
            if mode:
                with tarfile.open(f"{work}/{seed}{source}", mode) as tar:
                    tar.add(f"{work}/{seed}", ".")
            text = prepare(work, f"o{seed}{source}", "folder", "--source", f"{work}/{seed}{source}", *OPTIONS, ranks=ranks)
            told = sorted(line.split("warning: ")[1].replace(f"{seed}{source}:", f"{seed}/") for line in text.splitlines()
                          if "files that are not read" in line or "holds no images" in line)
            found.append((sets.digest(f"{work}/o{seed}{source}"), told))
        check(found[0] == found[1] == found[2] and found[0][1], f"tree {seed}: the same from folder and archives ({found[0][1]})")


with tempfile.TemporaryDirectory(prefix="convoy-test-") as folder:
    {"same": same_case, "labels": labels_case, "layouts": layouts_case, "archives": archives_case}[sys.argv[1]](folder)
