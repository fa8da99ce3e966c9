# SPDX-License-Identifier: Apache-2.0
"""Names, members and files of odd kinds: read as they are, left out with a word, or named in an error; never waited for."""
import io
import os
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
import image_sets as sets  # noqa: E402  (the path is set above)
from preparation import check, prepare, run  # noqa: E402

PICTURES = [sets.jpeg(sets.photo(i, 40, 50)) for i in range(8)]


def names(work):
    odd = ["Käse/ä ö.JPEG", "sp ace/a b.jpg", "new\nline/x\ny.jpg", "tab\tcls/t\tt.jpg", "L" * 200 + "/" + "n" * 240 + ".jpg",
           "quote'\"/q'\".jpg", "日本/画像.jpg", "%41/%2e.jpg"]
    files = dict(zip(odd, PICTURES))
    for name, data in files.items():
        sets.write(f"{work}/in/{name}", data)
    sets.write(f"{work}/in/new\nline/bro\tken\n.jpg", b"xx")
    base = ("folder", "--train", f"{work}/in", "--encoding", "jpeg", "--keep-names")
    text = prepare(work, "o", *base, ranks=2)
    check("9 images read, 8 kept, 1 skipped" in text, "odd names")
    split = sets.Split(f"{work}/o")
    check(dict(zip(split.names, split.images)) == files, "are kept to the letter")
    check(split.classes == sorted({n.split("/")[0] for n in odd}), "as classes too")
    with open(f"{work}/o/report.tsv", encoding="utf-8") as file:
        check([len(line.split("\t")) for line in file.read().splitlines()] == [3], "and break no line of the report")
    check("nothing to do" in prepare(work, "o", *base, ranks=3), "nor the journal")
    check("1 partition, 8 images: whole" in run("verify", f"{work}/o") and "new\u240aline" in run("inspect", f"{work}/o"), "nor the rest")


def archives(work):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in (("/abs/one.jpg", PICTURES[0]), ("../up/two.jpg", PICTURES[1]), ("./dot/three.jpg", PICTURES[2]),
                           ("dot/ünï.jpg", PICTURES[3]), ("dot/" + "z" * 300 + ".jpg", PICTURES[4]), ("a/b/c/d.jpg", PICTURES[5]),
                           ("dot/._mac.jpg", b"resource fork"), ("a/b/./x/../c//e.jpg", PICTURES[6]),
                           ("a/b/c/d.jpg/..", PICTURES[7]), ("..", PICTURES[7])):
            sets.add(tar, name, data)
        for name, kind, target in (("dot/lost.jpg", tarfile.SYMTYPE, "nowhere.jpg"), ("dot/loop.jpg", tarfile.SYMTYPE, "loop.jpg"),
                                   ("dot/link.jpg", tarfile.SYMTYPE, "three.jpg"), ("dot/hard.jpg", tarfile.LNKTYPE, "./dot/three.jpg"),
                                   ("dot/pipe.jpg", tarfile.FIFOTYPE, ""), ("dot/device.jpg", tarfile.CHRTYPE, ""),
                                   ("dot/folder.jpg", tarfile.DIRTYPE, "")):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            tar.addfile(info)
    sets.write(f"{work}/odd.tar", buffer.getvalue())
    base = ("folder", "--train", f"{work}/odd.tar", "--sizes", 16, "--keep-names")
    text = prepare(work, "odd", *base)
    split = sets.Split(f"{work}/odd")
    check(sorted(split.names) == ["a/b/c/d.jpg", "a/b/c/e.jpg", "abs/one.jpg", "dot/hard.jpg", "dot/link.jpg", "dot/three.jpg",
                                  "dot/" + "z" * 300 + ".jpg", "dot/ünï.jpg", "up/two.jpg"], "files of an archive, nothing else")
    with open(f"{work}/odd/report.tsv", encoding="utf-8") as file:
        check(file.read() == "link to nowhere\tdot/loop.jpg\tto loop.jpg, which is not there\n"
              "link to nowhere\tdot/lost.jpg\tto nowhere.jpg, which is not there\n", "links that lead nowhere are told")
    images = dict(zip(split.names, split.images))
    check((images["dot/link.jpg"] == images["dot/three.jpg"]).all() and (images["dot/hard.jpg"] == images["dot/three.jpg"]).all(),
          "links are read")
    check("11 images read, 9 kept, 2 skipped" in text and "as --strict demands" in prepare(work, "strict", *base, "--strict", expect=3),
          "and count as skipped")
    check(split.classes == ["a", "abs", "dot", "up"] and not os.path.exists(f"{work}/up"), "nothing is unpacked")
    sets.write(f"{work}/shard.tar", sets.tar_of([("a/../x.jpg", PICTURES[0]), ("./x.cls", b"1"), ("/y.jpg", PICTURES[1]), ("y.cls", b"0")]))
    prepare(work, "shard", "webdataset", "--train", f"{work}/shard.tar", "--sizes", 16, "--keep-names")
    split = sets.Split(f"{work}/shard")
    check(dict(zip(split.names, split.labels)) == {"shard/x": 1, "shard/y": 0}, "keys of a shard too")
    sets.write(f"{work}/sparse/cls/s.jpg", PICTURES[0])
    os.truncate(f"{work}/sparse/cls/s.jpg", 2 << 20)  # the hole lies behind the image
    for form in ("gnu", "posix"):
        subprocess.run(["tar", "-C", f"{work}/sparse", "-S", f"--format={form}", "-cf", f"{work}/{form}.tar", "cls"], check=True)
        assert os.path.getsize(f"{work}/{form}.tar") < 1 << 20
        prepare(work, form, "folder", "--train", f"{work}/{form}.tar", "--encoding", "jpeg")
        with open(f"{work}/sparse/cls/s.jpg", "rb") as file:
            check(sets.Split(f"{work}/{form}").images == [file.read()], f"a sparse member of a {form} archive")


def folders(work):
    sets.write(f"{work}/in/b/1.jpg", PICTURES[0])
    sets.write(f"{work}/in/c/notes.txt", "no image")
    os.makedirs(f"{work}/in/a")
    base = ("folder", "--train", f"{work}/in", "--sizes", 16)
    text = prepare(work, "o1", *base, ranks=5)
    check("in/a' holds no images" in text and "in/c' holds no images" in text, "folders without images")
    split = sets.Split(f"{work}/o1")
    check(split.classes == ["a", "b", "c"] and split.labels == [1], "keep their numbers")
    os.makedirs(f"{work}/links")
    os.symlink(f"{work}/in/b", f"{work}/links/b")
    os.symlink(f"{work}/links", f"{work}/in/b/loop")
    text = prepare(work, "o2", "folder", "--train", f"{work}/links", "--sizes", 16)
    check("1 image read" in text and "b/loop' is a link to a folder on the way to it" in text, "a circle of links")
    os.unlink(f"{work}/in/b/loop")
    os.mkfifo(f"{work}/in/b/2.jpg")
    text = prepare(work, "o3", *base)
    check("1 image read" in text and "2.jpg' is no file (a pipe" in text, "a pipe")
    sets.write(f"{work}/list", "b/1.jpg 0\nb/2.jpg 0\n")
    text = prepare(work, "o4", "list", "--train", f"{work}/list", "--root", f"{work}/in", "--sizes", 16, expect=3)
    check("cannot read" in text and "2.jpg' (it is a pipe" in text, "a pipe that a list names")
    os.unlink(f"{work}/in/b/2.jpg")
    os.symlink("/nonexistent", f"{work}/in/b/2.jpg")
    text = prepare(work, "o5", *base, ranks=2)
    check("2 images read, 1 kept, 1 skipped" in text, "a link to nowhere is skipped, and counted")
    with open(f"{work}/o5/report.tsv", encoding="utf-8") as file:
        check(file.read() == "link to nowhere\tb/2.jpg\tto /nonexistent, which is not there\n", "and told")
    sets.write(f"{work}/lost", "b/1.jpg 0\nb/2.jpg 0\n")
    text = prepare(work, "o6", "list", "--train", f"{work}/lost", "--root", f"{work}/in", "--sizes", 16)
    check("2 images read, 1 kept, 1 skipped" in text, "in a list, too")
    check("as --strict demands" in prepare(work, "o7", *base, "--strict", expect=3), "--strict refuses it")


with tempfile.TemporaryDirectory(prefix="convoy-test-") as folder:
    names(folder + "/names")
    archives(folder + "/archives")
    folders(folder + "/folders")
