# SPDX-License-Identifier: Apache-2.0
"""Names as people have them: classes with #, line ends, tabs, quotes and bytes that are no UTF-8, in all that is printed and written; folders
with # in configurations; starts in the same second; users who share a TMPDIR. One case an argument."""
import csv
import glob
import io
import json
import os
import subprocess
import sys
import time

import h5py

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
import image_sets as sets  # noqa: E402  (the path is set above)
from report_test import Page  # noqa: E402
from runner import CONVOY, PREPROCESS, check, last, mpirun, work_folder  # noqa: E402

CLASSES = sorted([b"#1 dog", b"#99 tunes", b"3d-printer", b"a, \"b\"", b"caf\xe9", b"<i>&", b"tab\there", b"two\nlines", b"\x1b[31mred"])
SHOWN = [name.decode(errors="replace").replace("\t", "\u2409").replace("\n", "\u240a").replace("\x1b", "\u241b") for name in CLASSES]
JOB = ["--model", "resnet8", "--batch-size", 6, "--max-steps", 2, "--threads", 1, "--no-tensorboard"]


def run(ranks, *words, program=CONVOY, expect=0, env=None, cwd=None, **options):
    """stdout and stderr as bytes: names may hold any."""
    command = (mpirun(ranks) if ranks else []) + [program] + [w if isinstance(w, bytes) else str(w) for w in words]
    done = subprocess.run(command, capture_output=True, timeout=100, check=False, cwd=cwd, env=dict(os.environ, OMP_NUM_THREADS="1", **(env or {})),
                          **options)
    if done.returncode != expect:
        sys.exit(f"{command}\nended with {done.returncode}, expected {expect}\n{done.stdout}\n{done.stderr}")
    return done.stdout, done.stderr


def table(data):
    return list(csv.reader(io.StringIO(data.decode(errors="surrogateescape"), newline="")))


def text(name):
    return name.decode(errors="surrogateescape")


def partition(folder):
    """Class names, and the number of images of each, of train."""
    names, images = [], [0] * len(CLASSES)
    for path in glob.glob(f"{folder}/train-*.h5"):
        with h5py.File(path) as file:
            names = [bytes(name) for name in file.attrs["class_names"]]
            for label in file["labels"][()]:
                images[label] += 1
    return names, images


def classes(work):
    for c, name in enumerate(CLASSES):
        for i in range(2):
            folder = os.path.join(os.fsencode(f"{work}/in"), name)
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, b"%d.png" % i), "wb") as file:
                file.write(sets.png(sets.photo(10 * c + i, 32, 32)))
    data = f"{work}/set"
    out, err = run(3, "folder", "--train", f"{work}/in", "--val", f"{work}/in", "--out", data, "--sizes", 32, "--keep-names", program=PREPROCESS)
    names, images = partition(data)
    check(names == CLASSES, "the classes are the folders' names, byte for byte")
    check(images == [2] * len(CLASSES), "each has its images")
    lines = (out + err).decode(errors="replace").split("\n")
    check(sum(any(f" {c}  {shown}" in line for line in lines) for c, shown in enumerate(SHOWN)) == len(SHOWN), "a line of the output each")

    for ranks, program in ((1, PREPROCESS), (0, CONVOY)):
        words = ("inspect", data) if program == PREPROCESS else ("inspect", "data", data)
        said = run(ranks, *words, program=program)[0].decode(errors="replace")
        check(all(shown in said for shown in SHOWN) and not set("\t\x1b") & set(said), f"{os.path.basename(program)} inspect shows them")

    folder = os.fsencode(work) + b"/r\xe9sum #"
    for ranks in (1, 3):
        run(ranks, "train", "--data", data, *JOB, "--output-dir", folder + b"%d" % ranks)
        run(ranks, "evaluate", folder + b"%d" % ranks, "--data", data, "--output-dir", folder + b"%d/evaluation" % ranks, "--threads", 1)
    folder += b"3"
    with open(folder + b"/evaluation/confusion.csv", "rb") as file:
        rows = table(file.read())
    check(rows[0][1:] == [text(n) for n in CLASSES] == [row[0] for row in rows[1:]] and {len(row) for row in rows} == {len(CLASSES) + 1},
          "evaluate: the matrix has the names, quoted")
    with open(folder + b"/evaluation/per_class.csv", "rb") as file:
        rows = table(file.read())
    check([row[1] for row in rows[1:]] == [text(n) for n in CLASSES] and {len(row) for row in rows} == {5}, "evaluate: and so have the classes")
    with open(folder + b"/evaluation/result.json", encoding="utf-8") as file:
        check(json.load(file)["images"] == 2 * len(CLASSES), "evaluate: result.json is UTF-8")

    stored = [name.decode(errors="replace") for name in CLASSES]  # as the checkpoint has them
    k = len(CLASSES)
    texts = {}
    for form in ("csv", "json", "text"):
        texts[form], _ = run(3, "predict", folder, f"{work}/in", "--format", form, "--topk", k, "--threads", 1)
        check(run(1, "predict", folder, f"{work}/in", "--format", form, "--topk", k, "--threads", 1)[0] == texts[form], f"predict: {form} on 1 and 3 ranks")
    rows = table(texts["csv"])[1:]
    paths = sorted(text(path) for path in glob.glob(os.fsencode(work) + b"/in/*/*.png"))
    check(sorted(row[0] for row in rows) == paths, "predict: CSV has the paths, byte for byte")
    check(all(row[4 + 3 * i] == stored[int(row[3 + 3 * i])] for row in rows for i in range(k)) and len(rows) == 2 * k, "predict: CSV names the classes")
    records = [json.loads(line) for line in texts["json"].decode().splitlines()]
    check(all(c["name"] == stored[c["class"]] for r in records for c in r["classes"]) and len(records) == 2 * k, "predict: so does JSON, in UTF-8")
    lines = texts["text"].decode(errors="replace").rstrip("\n").split("\n")
    check(len(lines) == 2 * k * (k + 1) and {line.split(" %  ")[1] for line in lines if " %  " in line} == set(SHOWN), "predict: text has a line each")
    check(not set("\t\x1b") & set("".join(lines)), "and nothing that steers a terminal")

    # A matrix with mistakes, so that the page names all classes.
    with open(folder + b"/evaluation/confusion.csv", "wb") as file:
        quoted = [b'"' + name.replace(b'"', b'""') + b'"' for name in CLASSES]
        file.write(b"label," + b",".join(quoted) + b"\n" + b"".join(
            name + b"," + b",".join(b"%d" % (1 if column == (row + 1) % k else 0) for column in range(k)) + b"\n" for row, name in enumerate(quoted)))
    run(0, "report", folder, "--output", f"{work}/page.html")
    with open(f"{work}/page.html", "rb") as file:
        page = file.read().decode()  # an error: the page is no UTF-8
    check(not {c for c in page if c < " " or c == "\x7f"} - {"\n"}, "report: no control characters")
    names = Page(f"{work}/page.html")
    check(not names.open and all(names.row(shown)[1:3] == ["0", "1"] for shown in SHOWN), "report: each class has its row")
    out, _ = run(1, "preflight", "--json", "--data", data, "--output-dir", folder)
    check(json.loads(out.decode()) is not None, "preflight: JSON for a folder that is not UTF-8")


def paths(work):
    """Folders with # and blanks: the run's configuration, a dry run's, and the checkpoint's say them as they are."""
    place = f"{work}/set #1 \"a\""
    run(1, "synthetic", "--out", place, "--samples", 48, "--val-samples", 12, "--image-size", 16, "--partitions", 2, program=PREPROCESS)
    run(1, "train", "--data", os.path.basename(place), *JOB, "--output-dir", "run #1", "--name", "a#b", cwd=work)
    with open(f"{work}/run #1/config.cfg", encoding="utf-8") as file:
        config = file.read()
    check(f"\ndata = \"{work}/set #1 \\\"a\\\"\"\n" in config and '\nname = "a#b"\n' in config, "config.cfg holds them in quotes")
    run(3, "train", "--config", f"{work}/run #1/config.cfg", "--output-dir", f"{work}/again")
    with open(f"{work}/again/config.cfg", encoding="utf-8") as file:
        check(file.read() == config, "a run from it says the same")
    out, _ = run(1, "train", "--data", place, *JOB, "--dry-run", "--dry-run-seconds", 0)
    with open(f"{work}/dry.cfg", "wb") as file:
        file.write(out)
    check(run(1, "train", "--config", f"{work}/dry.cfg", "--dry-run", "--dry-run-seconds", 0)[0] == out, "a dry run's output repeats it")
    out, _ = run(1, "evaluate", f"{work}/run #1", cwd=work)  # the data set's place is the checkpoint's
    check(b'"images":12' in out, "evaluate finds the set where the checkpoint says")
    out, _ = run(2, "train", "--resume", "auto", "--output-dir", f"{work}/run #1", "--max-steps", 1)
    check(b"step 2" in out and b"set #1" in out, "so does --resume auto")


def seconds(work):
    """The folder's name is of the second; whoever has it keeps it."""
    env = {"TZ": "UTC"}
    now = time.time()
    taken = [time.strftime("runs/lenet-%Y%m%d-%H%M%S", time.gmtime(now + second)) for second in range(100)]
    for name in taken:
        os.makedirs(f"{work}/{name}")
    job = ["train", "--synthetic", "--synthetic-size", 28, "--synthetic-samples", 32, "--model", "lenet", "--batch-size", 16, "--max-steps", 1,
           "--skip-eval", "--threads", 1]
    run(1, *job, cwd=work, env=env)
    run(3, *job, "--replicas", 1, cwd=work, env=env)
    made = sorted(name for name in os.listdir(f"{work}/runs") if f"runs/{name}" not in taken)
    check(len(made) == 2 and all(name.endswith(("-2", "-3")) and f"runs/{name[:-2]}" in taken for name in made), f"folders of their own: {made}")
    check(all(os.path.exists(last(f"{work}/runs/{name}")) for name in made) and not any(os.listdir(f"{work}/{name}") for name in taken),
          "and nothing in that of another")


def users(work):
    """Copies of a data set in the TMPDIR of two users."""
    os.chmod(work, 0o755)
    os.makedirs(f"{work}/tmp")
    os.chmod(f"{work}/tmp", 0o1777)
    run(1, "synthetic", "--out", f"{work}/set", "--samples", 32, "--val-samples", 16, "--image-size", 28, "--partitions", 2, program=PREPROCESS)
    own = os.geteuid()
    numbers = [own] if own != 0 or subprocess.run([CONVOY, "--help"], capture_output=True, check=False, user=1001, extra_groups=[]).returncode != 0 \
        else [1001, 1002]  # only root may be others, if they may start the program
    for number in numbers:
        home = f"{work}/home-{number}"
        os.makedirs(home)
        os.chown(home, number, -1)
        as_user = {} if number == own else {"user": number, "group": number, "extra_groups": []}
        run(0, "train", "--data", f"{work}/set", "--data-cache", "stage", "--model", "lenet", "--batch-size", 16, "--max-steps", 1, "--threads", 1,
            "--output-dir", f"{home}/run", cwd=home, env={"TMPDIR": f"{work}/tmp", "OMPI_MCA_orte_tmpdir_base": f"{work}/tmp", "HOME": home}, **as_user)
        copies = glob.glob(f"{work}/tmp/convoy-data-{number}/*/train-*.h5")
        check(len(copies) == 2 and all(os.stat(copy).st_uid == number for copy in copies), f"user {number} has copies")
        check(os.path.exists(last(f"{home}/run")), "and trained on them")


if __name__ == "__main__":
    with work_folder() as work_:
        {case.__name__: case for case in (classes, paths, seconds, users)}[sys.argv[1]](work_)
