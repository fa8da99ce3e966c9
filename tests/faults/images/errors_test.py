# SPDX-License-Identifier: Apache-2.0
"""Sources and output folders that are not as they should be: one clear error, the right code, nothing half made."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
import image_sets as sets  # noqa: E402  (the path is set above)
from preparation import check, prepare, run  # noqa: E402


def expect_error(work, parts, *words, code=3, out="o", ranks=0):
    text = prepare(work, out, *words, expect=code, ranks=ranks)
    errors = [line for line in text.splitlines() if "error:" in line]
    check(len(errors) == 1 and all(p in errors[0] for p in parts), f"{errors[0] if errors else text}")
    left = [n for _, _, names in os.walk(f"{work}/{out}") for n in names if n.endswith((".h5", ".tmp"))]
    assert not left, left


def end_of_members(tar):
    """Where the zeros begin that end an archive."""
    return len(tar.rstrip(b"\0")) // 512 * 512 + 512


def archives(work):
    files = sets.make_set(4)
    members = [(n, d) for n, (d, _) in files.items()]
    whole = sets.tar_of(members)
    end = end_of_members(whole)
    cases = {
        "noend.tar": (whole[:end], "has no end marker"),
        "middle.tar": (whole[:60_000], "is truncated"),
        "header.tar": (whole[:512 * 5 + 100], "is truncated"),
        "damaged.tar": (whole[:512 + 150] + b"XXXX" + whole[512 + 154:], ""),
        "text.tar": (b"<html>not found</html>" * 50, "is damaged or not a tar archive"),
        "empty.tar": (b"", "it is empty"),
        "cut.tar.gz": (sets.tar_of(members, "w:gz")[:-300], "is truncated"),
    }
    for name, (data, what) in cases.items():
        sets.write(f"{work}/{name}", data)
        if what:
            expect_error(work, [f"{name}'", what], "folder", "--train", f"{work}/{name}", "--sizes", 16, ranks=2)
    # A damaged header is no header.
    head = whole[512 * 3:]
    at = head.find(b"n01440764/")
    sets.write(f"{work}/damaged.tar", whole[:512 * 3 + at] + b"Z" + whole[512 * 3 + at + 1:])
    expect_error(work, ["damaged.tar'", "at byte"], "folder", "--train", f"{work}/damaged.tar", "--sizes", 16)
    rest = sets.tar_of(members[3:])
    outer = sets.tar_of([("a.tar", sets.tar_of(members[:3])), ("b.tar", rest[:end_of_members(rest)])])
    sets.write(f"{work}/outer.tar", outer)
    expect_error(work, ["outer.tar:b'", "no end marker"], "folder", "--train", f"{work}/outer.tar", "--sizes", 16,
                 out="half", ranks=2)
    flat = sets.tar_of([(n.split("/")[1], d) for n, d in members])
    sets.write(f"{work}/flat.tar", flat)
    expect_error(work, ["flat.tar'", "nothing says their classes"], "folder", "--train", f"{work}/flat.tar")
    rec = b"".join(sets.record(1.0, i, d) for i, (_, d) in enumerate(members))
    second = 8 + (24 + len(members[0][1]) + 3) // 4 * 4
    for name, data, what in (("cut.rec", rec[:-8], "is truncated"), ("text.rec", b"hello" * 40, "not a RecordIO file"),
                             ("hurt.rec", rec[:second] + b"\1" * 8 + rec[second + 8:], "damaged")):
        sets.write(f"{work}/{name}", data)
        expect_error(work, [f"{name}'", what], "recordio", "--train", f"{work}/{name}", "--sizes", 16)


def folders(work):
    files = sets.make_set(4)
    sets.write_folder(files, f"{work}/in")
    base = ("folder", "--train", f"{work}/in", "--sizes", 16)
    expect_error(work, ["none'", "No such file or directory"], "folder", "--train", f"{work}/none", ranks=2)
    os.makedirs(f"{work}/empty/a")
    expect_error(work, ["no image of the train split is left", "report.tsv"], "folder", "--train", f"{work}/empty", ranks=2)
    sets.write(f"{work}/empty/a/x.jpg", "no image")
    expect_error(work, ["no image of the train split is left"], "folder", "--train", f"{work}/empty", out="again")
    check(os.listdir(f"{work}/again") == ["report.tsv"], "which leaves a report")
    sets.write(f"{work}/empty/a/x.jpg", sets.jpeg(sets.photo(1, 20, 20)))
    prepare(work, "again", "folder", "--train", f"{work}/empty", "--sizes", 16)
    check("1 partition, 1 image: whole" in run("verify", f"{work}/again"), "and nothing in the way of the repaired source")
    expect_error(work, ["has no class folders", "begin with 'x'"], *base, "--key-prefix", "x")
    expect_error(work, ["16 train samples can't fill 17"], *base, "--partitions", 17, code=2, ranks=2)
    prepare(work, "o", *base, "--partitions", 2)
    check(len(sets.digest(f"{work}/o")) == 3, "with fewer the same folder does")
    expect_again = ("is in the way", "made with other options")
    text = prepare(work, "o", *base, "--partitions", 2, "--seed", 9, expect=2, ranks=2)
    check(all(p in text for p in expect_again) and text.count("error:") == 1, "other options are refused")
    prepare(work, "o", *base, "--partitions", 2, "--seed", 9, "--overwrite")
    check("whole" in run("verify", f"{work}/o"), "unless they are wished for")
    sets.write(f"{work}/truth.txt", "490\n361\n")
    expect_error(work, ["truth.txt', line 1", "a number alone"], *base, "--label-file", f"{work}/truth.txt", out="p")
    expect_error(work, ["tiny.zip' is no tar archive", "unpack it"], "folder", "--source", f"{work}/tiny.zip", code=2, out="p", ranks=2)
    expect_error(work, ["unknown scheme 'gs'"], "folder", "--train", "gs://bucket/x", code=2, out="p", ranks=2)
    expect_error(work, ["no credentials for S3"], "folder", "--train", "s3://bucket/x", code=2, out="p")
    expect_error(work, ["--sizes full ('full' needs --encoding jpeg"], *base[:-1], "full", "--encoding", "raw", code=2, out="p")
    expect_error(work, ["'--sises'; did you mean '--sizes'?"], *base, "--sises", 3, code=2, out="p")
    expect_error(work, ["--train-ratio"], "folder", "--train", f"{work}/in", "--val", f"{work}/in", "--train-ratio", 0.5,
                 code=2, out="p")
    for out in ("inside", "inside"):
        text = prepare(f"{work}/in", out, *base, ranks=2)
    check("nothing to do" in text and sets.Split(f"{work}/in/inside").classes == sets.CLASSES, "an output folder in the source is no class")
    shutil.rmtree(f"{work}/in/inside")
    text = prepare(work, "leak", *base, "--val", f"{work}/in", ranks=3)
    check("16 images of val are in train, too" in text, "a split that is both")
    # Another preparation's intermediate files are not this one's.
    prepare(work, "u", *base, "--strict", expect=0)
    os.makedirs(f"{work}/v/unfinished")
    with open(f"{work}/v/unfinished/job.json", "w", encoding="utf-8") as file:
        file.write('{"recipe": "other", "source": "x"}')
    sets.write(f"{work}/v/unfinished/0000000-start.run", b"of another program")
    text = prepare(work, "v", *base, expect=2)
    check("v/unfinished' is in the way" in text, "an unfinished preparation with other options")
    prepare(work, "v", *base, "--overwrite")
    check(sets.digest(f"{work}/v") == sets.digest(f"{work}/u"), "is replaced on request")


def full_disk(work):
    files = sets.make_set(30)
    sets.write_folder(files, f"{work}/in")
    small, expected = f"{work}/small", f"{work}/expected"
    base = ("folder", "--train", f"{work}/in", "--sizes", 128, "--partitions", 4, "--memory", 16)
    prepare(work, "expected", *base)
    os.makedirs(small)
    for megabytes, phase in ((3, "run"), (9, "train-0000")):
        mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", small]
        if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            print("skipped: a full disk (no right to mount a small one)")
            sys.exit(77)
        try:
            text = prepare(work, "small", *base, expect=3, ranks=2)
            check("No space left on device" in text and "make room" in text and phase in text, f"a full disk: {phase}")
            check(text.count("MB of room, the partitions need") == (phase != "run"), "which was foreseen")
            left = [n for n in os.listdir(small) if n.endswith((".h5", ".tmp"))]
            whole = sets.digest(expected)
            for name in left:
                assert sets.digest(small)[name] == whole[name], name
            subprocess.run(["mount", "-o", "remount,size=40m", small], check=True)
            prepare(work, "small", *base)
            check(sets.digest(small) == whole, "with room it goes on")
        finally:
            subprocess.run(["umount", small], check=True)


def broken_disk(work):
    """Every kind of call that writes fails once, in both phases: an error, nothing half made, and the next run goes on."""
    files = sets.make_set(10)
    sets.write_folder(files, f"{work}/in")
    base = ("folder", "--train", f"{work}/in", "--sizes", "200,48", "--partitions", 3, "--memory", 16)
    prepare(work, "expected", *base)
    expected = sets.digest(f"{work}/expected")
    library = f"{os.environ['CONVOY_BUILD']}/tests/libconvoy_failing_calls_preload.so"
    # HDF5 opens a file before it creates it, and takes a failure for an answer: its opening fails always.
    cases = [("write", ".run"), ("fsync", ".run"), ("rename", ".run"), ("open", ".run"), ("write", "train-00001"),
             ("fsync", "train-00001"), ("rename", "train-00001"), ("open", "train-00002"), ("all", "preparation.json"),
             ("all", "report.tsv"), ("all", "job.json")]
    for number, (call, where) in enumerate(cases):
        rule = {"CONVOY_FAILING_CALLS": f"{call}:{where}:EIO:{0 if call == 'open' else 1}", "LD_PRELOAD": library}
        text = prepare(work, f"o{number}", *base, expect=None, env=rule)
        errors = [line for line in text.splitlines() if "error:" in line]
        check(len(errors) == 1 and "Input/output error" in errors[0] and where in errors[0], f"{call} of {where}: {errors or text}")
        for name, digest in sets.digest(f"{work}/o{number}").items():
            assert not name.endswith(".tmp"), name
            if name.endswith(".h5"):
                assert digest == expected[name], name
        prepare(work, f"o{number}", *base)
        assert sets.digest(f"{work}/o{number}") == expected, (call, where)


with tempfile.TemporaryDirectory(prefix="convoy-test-") as folder:
    os.environ["HOME"] = folder
    for name in [n for n in os.environ if n.startswith("AWS_")]:
        del os.environ[name]
    {"archives": archives, "folders": folders, "full_disk": full_disk,
     "broken_disk": broken_disk}[sys.argv[1]](folder)
