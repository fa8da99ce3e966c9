# SPDX-License-Identifier: Apache-2.0
"""A source that has changed under the same names is noticed before anything is read, and the message says what differs."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
import image_sets as sets  # noqa: E402  (the path is set above)
from preparation import check, prepare, run  # noqa: E402


def refused(text, *parts):
    errors = [line for line in text.splitlines() if "error:" in line]
    return len(errors) == 1 and all(p in errors[0] for p in parts) and "images read" not in text


def touch(path, seconds):
    os.utime(path, (os.stat(path).st_mtime + seconds,) * 2)


def contents(work):
    files = sets.make_set(4)
    name, other = sorted(files)[5], sets.jpeg(sets.photo(77, 90, 90))
    sets.write_folder(files, f"{work}/in")
    sets.write(f"{work}/names.txt", "".join(f"{n} {c}\n" for n, (_, c) in files.items()))
    sets.write(f"{work}/in.tar", sets.tar_of([(n, d) for n, (d, _) in files.items()]))
    size = ("--sizes", 16, "--partitions", 2)
    kinds = {"folder": ("folder", "--train", f"{work}/in", *size), "list": ("list", "--train", f"{work}/names.txt", "--root", f"{work}/in", *size),
             "tar": ("folder", "--train", f"{work}/in.tar", *size)}
    before = {}
    for kind, words in kinds.items():
        prepare(work, kind, *words)
        before[kind] = sets.digest(f"{work}/{kind}")
        check(refused(prepare(work, kind, *words, "--seed", 9, expect=2), "is in the way", "other options: seed=1, now seed=9"), f"{kind}: options are named")
    # Files that were copied: other times, and nothing else.
    touch(f"{work}/in/{name}", 10)
    touch(f"{work}/in.tar", 10)
    for kind, words in kinds.items():
        text = prepare(work, kind, *words, ranks=2, expect=2)
        check(refused(text, "same names and sizes, but of other times", "--ignore-times", "--overwrite"), f"{kind}: times alone")
        text = prepare(work, kind, *words, "--ignore-times", ranks=2)
        check("nothing to do" in text and "nothing to do" in prepare(work, kind, *words), "which may be ignored, once")
        check(sets.digest(f"{work}/{kind}") == before[kind], "and nothing is made")
    # Other contents under the same name.
    sets.write(f"{work}/in/{name}", other)
    sets.write(f"{work}/in.tar", sets.tar_of([(n, other if n == name else d) for n, (d, _) in files.items()]) + bytes(512))
    for kind, words in kinds.items():
        for more in ((), ("--ignore-times",))[:2 if kind == "folder" else 1]:
            text = prepare(work, kind, *words, *more, expect=2)
            check(refused(text, "is in the way", "same names, but other sizes", "--overwrite"), f"{kind}: other contents")
        text = prepare(work, kind, *words, "--overwrite", ranks=2)
        check("2 partitions made, 0 kept" in text and sets.digest(f"{work}/{kind}") != before[kind], "are taken on request")
    os.rename(f"{work}/in/{name}", f"{work}/in/{name}.jpg")
    check(refused(prepare(work, "folder", *kinds["folder"], expect=2), "added, removed or renamed"), "other names")


def earlier_version(work):
    """Sets of versions that noted names only stay whole; what can't be known of them is said."""
    files = sets.make_set(2)
    sets.write_folder(files, f"{work}/in")
    base = ("folder", "--train", f"{work}/in", "--sizes", 16)
    prepare(work, "o", *base)
    with open(f"{work}/o/preparation.json", encoding="utf-8") as file:
        made = json.load(file)
    sets.write(f"{work}/o/preparation.json", json.dumps({k: v for k, v in made.items() if k not in ("labels", "names", "sizes", "times")}))
    text = prepare(work, "o", *base)
    check("nothing to do; an earlier version made them, which compared files by name" in text, "a set of an earlier version")
    check("1 partition, 8 images: whole" in run("verify", f"{work}/o"), "can be read")
    sets.write(f"{work}/in/new/1.jpg", sets.jpeg(sets.photo(1, 20, 20)))
    check(refused(prepare(work, "o", *base, expect=2), "from another source", "an earlier version"), "with other names it is another")


def unfinished(work):
    files = sets.make_set(3)
    name = sorted(files)[0]
    sets.write_folder(files, f"{work}/in")
    sets.write(f"{work}/in/{name}", "no image")
    base = ("folder", "--train", f"{work}/in", "--sizes", 16)
    text = prepare(work, "o", *base, "--strict", expect=3)
    check(os.path.exists(f"{work}/o/unfinished/job.json") and "repair them and start again with --overwrite" in text, "an unfinished preparation")
    touch(f"{work}/in/{name}", 10)
    check(refused(prepare(work, "o", *base, expect=2), "unfinished preparation", "other times", "--ignore-times"), "does not go on with other times")
    prepare(work, "o", *base, "--strict", "--ignore-times", expect=3)
    check("as --strict demands" in prepare(work, "o", *base, "--strict", expect=3), "unless they are to be ignored, once")
    sets.write(f"{work}/in/{name}", files[name][0])
    text = prepare(work, "o", *base, expect=2, ranks=2)
    check(refused(text, "unfinished preparation", "other sizes", "--overwrite"), "does not go on with other contents")
    text = prepare(work, "o", *base, "--strict", "--overwrite")
    check("12 images read, 12 kept" in text and "1 partition, 12 images: whole" in run("verify", f"{work}/o"), "but starts anew on request")


def overwrite(work):
    """--overwrite makes a complete set anew, and goes on if it was stopped."""
    sets.write_folder(sets.make_set(5), f"{work}/in")
    base = ("folder", "--train", f"{work}/in", "--sizes", 48, "--partitions", 3)
    prepare(work, "o", *base)
    expected = sets.digest(f"{work}/o")
    library = f"{os.environ['CONVOY_BUILD']}/tests/libconvoy_failing_calls_preload.so"
    rule = {"CONVOY_FAILING_CALLS": "rename:train-00001:EIO:1", "LD_PRELOAD": library}
    for more in (("--overwrite",), ()):
        text = prepare(work, "o", *base, "--overwrite", env=rule, expect=3)
        check("20 images read" in text and "continuing" not in text and len(sets.digest(f"{work}/o")) < len(expected) + 2, "a complete set is made anew")
        text = prepare(work, "o", *base, *more)
        check("2 partitions made, 1 kept" in text and "source: " in text and sets.digest(f"{work}/o") == expected, f"stopped, it goes on {more}")
    text = prepare(work, "o", *base, "--overwrite")
    check("3 partitions made, 0 kept" in text and sets.digest(f"{work}/o") == expected, "and the next is anew again")
    check("nothing to do" in prepare(work, "o", *base), "without it nothing is")


def strict(work):
    sets.write(f"{work}/in/a/1.jpg", sets.jpeg(sets.photo(1, 20, 20)))
    sets.write(f"{work}/in/a/2.png", sets.png(sets.photo(2, 20, 20)[:, :, 0]))
    base = ("folder", "--train", f"{work}/in", "--sizes", 16)
    prepare(work, "o", *base)
    text = prepare(work, "o", *base, "--strict", ranks=2, expect=3)
    check("1 images of this set are not as they should be, as --strict demands (1 grey" in text and text.count("error:") == 1, "--strict of a complete set")
    check("nothing to do" in prepare(work, "o", *base, "--strict=skipped"), "which nothing was skipped of")


def told(work):
    """Images of both splits, subsets that are too large, circles of links: told once, with numbers."""
    files = sets.make_set(3)
    names = sorted(files)
    sets.write_folder(files, f"{work}/train")
    sets.write_folder(sets.make_set(2, first=50), f"{work}/val")
    for new, old in (("a.jpg", 1), ("b.jpg", 4), ("c.jpg", 4), ("d.jpg", 7)):  # of another class and name
        sets.write(f"{work}/val/n01484850/{new}", files[names[old]][0])
    base = ("folder", "--train", f"{work}/train", "--val", f"{work}/val", "--sizes", 16)
    lines = []
    for ranks in (0, 3):
        text = prepare(work, f"o{ranks}", *base, ranks=ranks)
        lines.append([line.split("warning: ")[1] for line in text.splitlines() if "images of val are in train, too" in line])
    check(len(lines[0]) == 1 and lines[0] == lines[1] and lines[0][0].startswith("4 of 12 images of val"), f"equal files of both splits: {lines}")
    pairs = {f"'n01484850/{new}' of val is '{names[old]}' of train" for new, old in (("a.jpg", 1), ("b.jpg", 4), ("d.jpg", 7))}
    check(sum(p in lines[0][0] for p in pairs) == 2, "two are named")
    sets.write_folder({f"{c}/{i}.jpg": files[names[0]] for c in "ab" for i in range(4)}, f"{work}/same")
    text = prepare(work, "cut", "folder", "--train", f"{work}/same", "--sizes", 16, "--train-ratio", 0.5)
    check("4 of 4 images of val are in train, too" in text, "equal files of one set that is cut")
    text = prepare(work, "large", *base, "--subset", 99, "--val-subset", 12, ranks=2)
    check(text.count("--subset asks for 99 images, but there are only 12: all are taken") == 1 and "--val-subset asks" not in text, "a subset that is too large")
    for c in sets.CLASSES[:3]:
        os.symlink(f"{work}/train", f"{work}/train/{c}/loop")
    text = prepare(work, "loops", *base, ranks=2)
    check(text.count("is a link to a folder on the way to it") == 1 and "left out (the first of 3 such)" in text, "circles of links")


with tempfile.TemporaryDirectory(prefix="convoy-test-") as folder:
    for case in (contents, earlier_version, unfinished, overwrite, strict, told):
        os.makedirs(f"{folder}/{case.__name__}")
        case(f"{folder}/{case.__name__}")
