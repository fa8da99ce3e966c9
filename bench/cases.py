#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a folder of small scripts, each of which makes input as people bring it and prints what the programs made of it, and judges what
they print: on 1 and 3 ranks, and where a script prepares images from a folder, also from an archive of that folder.

    bench/cases.py FOLDER [NAME ...]      CONVOY_SOURCE: another source tree with a build in build/release

A script finds that tree at $CHECKOUT, whose programs are started by mpirun here, and Python at $PY. Verdicts: *right* (the numbers are), *warned*
(as right, and what is left out was said), *refused* (an error says what to do), WRONG. The lines with `|` are for bench/results.md. The exit
code is 1 if anything is wrong."""
import argparse
import datetime
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from machine import MACHINE

ROOT = pathlib.Path(os.environ.get("CONVOY_SOURCE", pathlib.Path(__file__).resolve().parent.parent)).resolve()

# Stands in for a program, and notes how it ended. Commands that look at results have one rank, and so has what an mpirun of the script starts.
CONVOY = """#!/bin/bash
words=("$@") launcher=()
[ "${{1:-}}" != train ] || words+=({more})
case ${{1:-}} in train | evaluate | predict | preflight)
  [ {ranks} = 1 ] || [ -n "${{OMPI_COMM_WORLD_SIZE:-}}" ] || launcher=(mpirun --oversubscribe --bind-to none -np {ranks}) ;;
esac
"""
PREPROCESS = """#!/bin/bash
words=() place='' launcher=()
for word; do
  if [ -n "$place" ] && [ {archive} = 1 ] && [ -d "$word" ] && [ "$1" = folder ]; then
    into=$(mktemp -d {work}/XXXXXX)
    tar -C "$word" -cf "$into/set.tar" .
    word=$into/set.tar
  fi
  place=''
  case $word in --source | --train | --val) place=1 ;; esac
  words+=("$word")
done
case ${{1:-}} in verify | inspect) ;; *) [ {ranks} = 1 ] || launcher=(mpirun --oversubscribe --bind-to none -np {ranks}) ;; esac
"""
START = """"${{launcher[@]}}" {program} "${{words[@]}}"
code=$?
echo "$1 ended with $code" 2>/dev/null >>{work}/ends
exit $code
"""


def numbers(text):
    return [float(n) for n in re.findall(r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?", text)]


def has(*lines):
    """Right if all of them are among the script's lines."""
    return lambda out: "right" if all(line in out.splitlines() for line in lines) else "WRONG"


def arrays(out, pattern):
    return [numbers(found) for found in re.findall(pattern, out)]


def first_photo(out):
    found = arrays(out, r"mask 0\): \[(.*?)\]")
    return "right" if found == [[255] * 4] else "WRONG"


def repeated_keys(out):
    mixed, twice = re.findall(r"^\w+ grey \[(.*?)\] label \[(.*?)\] report (.*)$", out, re.M)
    right = numbers(mixed[0]) in ([255, 90], [90, 255]) and len(numbers(mixed[1])) == 2 and numbers(twice[0])[:1] == [255]
    pairs = dict(zip(numbers(mixed[0]), numbers(mixed[1])))
    told = out.count("further files") == 2
    return "warned" if right and pairs == {255: 0, 90: 1} and numbers(twice[1])[:1] == [0] and told else "WRONG"


def annotated(out):
    names = "['n00', 'n01', 'n02']"
    both = f"train {names} {{0: 2, 1: 2, 2: 2}}", f"val {names} {{0: 1, 1: 1, 2: 1}}"
    counted = [line for line in out.splitlines() if line.startswith(("train ", "val "))]
    same = [sorted_counts(line) for line in counted] == [*both, *both]
    return "right" if same and "error" not in out else "WRONG"


def sorted_counts(line):
    head, _, counts = line.partition("{")
    return head + "{" + ", ".join(sorted(counts.rstrip("}").split(", "), key=lambda pair: int(pair.split(":")[0]))) + "}"


def classes(*expected):
    """The lines with classes and counts, in this order."""
    return lambda out: "right" if [sorted_counts(line) for line in out.splitlines() if re.match(r"(train|val) \[", line)] == list(expected) else "WRONG"


def own_names(out):
    pairs = re.findall(r"\('v(\d+)\.jpg', '(\d+)'\)", out)
    return "right" if len(pairs) == 12 and all(a == b for a, b in pairs) else "WRONG"


def other_kinds(out):
    return "warned" if all(kind in out for kind in (".bmp", ".gif", ".webp")) else "WRONG"


def upright(out):
    lines = re.findall(r"upright (\(.*?\)) stored (\(.*?\)) tag left (\w+)", out)
    return "right" if len(lines) == 2 and all(a == b == "(40, 48)" and tag in ("None", "1") for a, b, tag in lines) else "WRONG"


def one_table(out):
    rows = [numbers(line) for line in out.splitlines() if line.startswith(("per_class", "confusion"))]
    return "right" if len(rows) == 2 and all(len(set(row)) == 1 for row in rows) else "WRONG"


def odd_names(out):
    names = "['#1 fan', '#99 tunes', 'cat', 'dog', 'emu']"
    counts = f"train {names} {{0: 2, 1: 2, 2: 2, 3: 2, 4: 2}}" in [sorted_counts(line) for line in out.splitlines() if line.startswith("train [")]
    files = all(name in out for name in ("confusion.csv", "per_class.csv", "result.json"))
    return "right" if counts and "error:" not in out and files else "WRONG"


def refused_names(out):
    tops = [numbers(line) for line in out.splitlines() if "top1" in line]
    return "refused" if len(tops) == 1 and 100.0 in tops[0] and out.endswith("evaluate ended with 0\nevaluate ended with 3\n") else "WRONG"


def one_answer(out):
    top = re.search(r"top1\D*([0-9.]+)", out)
    predicted = re.findall(r"^ *(\d+) (\S+)$", out, re.M)
    half = len(predicted) // 2
    return "right" if top and predicted and predicted[:half] == predicted[half:] else "WRONG"


def one_element(out):
    return "right" if "hands on an array range" in out and "NOTHING LIMITS" not in out else "WRONG"


def two_users(out):
    return "right" if out.count("best held-out") == 2 and "error" not in out else "WRONG"


def close(out):
    errors = numbers(re.search(r"of var\. *\[(.*?)\]", out, re.S)[1])
    return "right" if len(errors) == 8 and max(map(abs, errors)) <= 1e-5 else "WRONG"


def refused_set(out):
    return "refused" if out.endswith("train ended with 3\n") and "resumed from" not in out else "WRONG"


def one_heading(out):
    heads = [line.split() for line in out.splitlines() if "top" in line]
    return "right" if len(heads) >= 1 and all("top2" not in " ".join(head) or "top5" in " ".join(head) for head in heads) else "WRONG"


def one_after_another(out):
    ends = re.findall(r"exit (\d+)", out)
    return "right" if len(ends) == 9 and set(ends) <= {"0", "2"} and "0" in ends else "WRONG"


def whole_epochs(out):
    full, cut = ([row.split(",") for row in re.search(rf"^{k}: (.*)$", out, re.M)[1].split()] for k in ("full", "cut"))
    same = [row[:3] + row[5:] for row in full] == [row[:3] + row[5:] for row in cut]  # seconds and hours stand between
    return "right" if same and len(full) == 3 and full[0][5] == "loss" else "WRONG"


def told_why(out):
    status = [line for line in out.splitlines() if "failed with code 3" in line]
    return "right" if status and not status[0].rstrip().endswith(":") or "space" in out.split("failed with code 3")[-1] else "WRONG"


def quiet_take_over(out):
    ends = dict(re.findall(r"(old|new): exit (\d+)", out))
    return "right" if ends == {"old": "6", "new": "75"} or ends == {"old": "6", "new": "0"} and "records are lost" not in out else "WRONG"


def told_and_counted(out):
    told = "was stored so" in out and "convoy-preprocess verify" not in out  # whose checksums are right
    return "warned" if told and "1 damaged sample:" in out and '"skipped":1' in out else "WRONG"


def command_line_counts(out):
    return "right" if "don't fit" not in out else "WRONG"


CASES = {
    "N01": ("webdataset samples with a photo and a mask", first_photo),
    "N03": ("webdataset keys that come again", repeated_keys),
    "N04": ("Tiny ImageNet's folders and annotations", annotated),
    "N05": ("a label table with a header", classes(*["train ['deer', 'frog'] {0: 3, 1: 3}"] * 2)),
    "N06": ("classes that have numbers as names", own_names),
    "N08": ("archives one after the other in a file", classes(*["train ['c0', 'c1', 'c2', 'c3'] {0: 1, 1: 1, 2: 1, 3: 1}"] * 2)),
    "N10": ("hard links, as folder and as archive", classes(*["train ['c0', 'c1'] {0: 2, 1: 2}", "val ['c0', 'c1'] {0: 1, 1: 1}"] * 2)),
    "N15": ("images of other kinds", other_kinds),
    "N18": ("EXIF orientation written as LONG", upright),
    "N21": ("class names with commas and quotes in CSV", one_table),
    "N22": ("classes `#1 fan`, line ends in names, a folder that is not UTF-8", odd_names),
    "N26": ("the same pictures, other class names", refused_names),
    "N27": ("darker pictures, as a set and as files", one_answer),
    "N28": ("a stopped element of a PBS array", one_element),
    "N32": ("`--data-cache stage` of two users", two_users),
    "N37": ("variances of nearly constant channels", close),
    "N39": ("resume in mid-epoch on a remade set", refused_set),
    "N45": ("`summary` of runs with other top-k", one_heading),
    "F01": ("three starts in one run directory", one_after_another),
    "F02": ("records of an epoch that was resumed", whole_epochs),
    "F03": ("`status` after a full disk", told_why),
    "F04": ("`--take-over` of a living run", quiet_take_over),
    "F05": ("a broken scan behind a right CRC", told_and_counted),
    "F06": ("an option of a file against one of the command line", command_line_counts),
}
ARGUMENTS = {"N37": ["1024"]}
TRAIN = {"N21": "--replicas 1", "N37": "--replicas 1", "N39": "--replicas 1"}  # fewer images than ranks; statistics of one batch; steps in an epoch


def make_checkout(folder, name, ranks, archive):
    """A source tree whose programs run on so many ranks and, for `folder`, on an archive of what they are given."""
    for entry in ROOT.iterdir():
        if not entry.name.startswith((".", "build")):
            (folder / entry.name).symlink_to(entry)
    work = folder / ".archives"
    work.mkdir()
    (work / "ends").touch()
    for path, text in (("src/cli/convoy", CONVOY), ("preprocess/convoy-preprocess", PREPROCESS)):
        program = folder / "build/release" / path
        program.parent.mkdir(parents=True)
        program.write_text((text + START).format(program=ROOT / "build/release" / path, ranks=ranks, archive=int(archive), work=work, more=TRAIN.get(name, "")))
        program.chmod(0o755)


def run(script, checkout):
    programs = {"P": checkout / "build/release/preprocess/convoy-preprocess", "C": checkout / "build/release/src/cli/convoy"}
    environment = dict(os.environ, CHECKOUT=str(checkout), R=f"{checkout}/", PY=sys.executable, OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1", OMP_NUM_THREADS="1", **{k: str(v) for k, v in programs.items()})
    shell = [sys.executable] if script.suffix == ".py" else ["bash"]
    done = subprocess.run([*shell, script, *ARGUMENTS.get(script.name[:3], [])], capture_output=True, cwd=checkout, env=environment, check=False,
                          timeout=600)
    return (done.stdout + done.stderr).decode(errors="backslashreplace") + (checkout / ".archives/ends").read_text()


def judge(name, output):
    try:
        return CASES[name][1](output)
    except (ValueError, IndexError, TypeError):  # a line that every right output has is missing
        return "WRONG"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("-v", "--verbose", action="store_true", help="print what each script prints")
    args = parser.parse_args()
    wrong = 0
    for name in args.names or CASES:
        scripts = sorted(args.folder.glob(f"{name}[-.]*"))
        if not scripts:
            sys.exit(f"'{args.folder}' has no script {name}")
        forms = ["folder", "archive"] if re.search(r"\$P folder|\"folder\"", scripts[0].read_text()) else [""]
        verdicts = []
        for ranks in (1, 3):
            for form in forms:
                with tempfile.TemporaryDirectory(prefix="convoy-cases-") as folder:
                    os.chmod(folder, 0o755)  # other users of a case start its programs too
                    checkout = pathlib.Path(folder)
                    make_checkout(checkout, name, ranks, form == "archive")
                    output = run(scripts[0], checkout)
                verdict = judge(name, output)
                verdicts.append(f"{ranks}{' ' + form if form else ''}: {verdict}")
                if args.verbose or verdict == "WRONG":
                    print(f"--- {name} on {ranks} {form}\n{output}---", flush=True)
                wrong += verdict == "WRONG"
        print(f"| {datetime.date.today()} | {CASES[name][0]} | {', '.join(verdicts)} | {MACHINE} |", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
