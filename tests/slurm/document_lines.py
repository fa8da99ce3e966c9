# SPDX-License-Identifier: Apache-2.0
"""The lines by which documents and job scripts tell their readers to submit jobs, and a tree and programs to try them with."""
import functools
import os
import pathlib
import re
import sys

SOURCE = pathlib.Path(os.environ["CONVOY_SOURCE"])

# Takes the place of both programs: the first rank tries the real ones with the same options, on no data and without training.
STAND_IN = r"""#!/bin/bash
case "$1 ${2:-}" in "status --after") exit "$3" ;; esac # what the program thinks of its end is tested elsewhere
[ "${PMIX_RANK:-${OMPI_COMM_WORLD_RANK:-0}}" = 0 ] || exit 0
for name in ${!PMIX_*} ${!OMPI_COMM_*} ${!OMPI_MCA_*} ${!SLURM_*} ${!PBS_*}; do unset "$name"; done
# Tasks of an array end and start side by side, and Open MPI removes one folder for all jobs of a host.
export OMPI_MCA_orte_tmpdir_base=$(mktemp -d)
words=()
while [ $# -gt 0 ]; do
  case $1 in
    --data) words+=(--synthetic); shift ;;
    --resume | --output-dir | --end-time) shift ;;
    *) words+=("$1") ;;
  esac
  shift
done
case ${words[0]} in
  train) @CONVOY@ "${words[@]}" --dry-run --dry-run-seconds 0 --threads 1 >/dev/null || exit ;;
  evaluate) @CONVOY@ evaluate --help >/dev/null || exit ;;
  *) @PREPROCESS@ --help-all | grep -q "^Options of ${words[0]}" || exit ;;
esac
echo "accepted: ${words[0]}"
"""

# In place of Apptainer: the program is not in an image.
APPTAINER = r"""#!/bin/bash
[ "$1" = exec ] || exit 99
shift
while [[ $1 == --* ]]; do [ "$1" = --bind ] && shift; shift; done
[[ $1 == *.sif && $2 == convoy ]] || exit 98
exec @STAND_IN@ "${@:3}"
"""

SUBMISSION = r"((?:[A-Z_]+=(?:'[^']*'|\S+) +)*{command} +[^#\[\n]*?(?:slurm|pbs)/[\w.]+[^#\[\n]*)"


def texts():
    """(where, words that a reader is to type): code of the documents, in blocks and between words; heads of the job scripts."""
    for document in [SOURCE / "README.md", *sorted((SOURCE / "docs").rglob("*.md")), *sorted((SOURCE / "tests").rglob("README.md"))]:
        text = document.read_text(encoding="utf-8")
        blocks = re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)
        spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
        for line in "\n".join([*blocks, *spans]).replace("\\\n", " ").splitlines():
            yield document.relative_to(SOURCE), line
    for script in [*sorted((SOURCE / "slurm").iterdir()), *sorted((SOURCE / "pbs").iterdir())]:
        for line in script.read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                yield script.relative_to(SOURCE), re.sub(r"^#\s*(.*?:  )?", "", line)


@functools.cache
def lines(command):
    """(where, line) of every sbatch or qsub line that starts a job script."""
    wanted = re.compile(SUBMISSION.format(command=command))
    return [(where, match[1].strip()) for where, line in texts() if (match := wanted.match(line))]


def report(where, line, good, text):
    """Prints what came of a line; True where it failed."""
    print(("ok   " if good else "FAIL ") + f"{where}: {line}" + ("" if good else f"\n{text[-1500:]}"))
    return not good


def finish(found, least, failures):
    """Ends a test of all lines."""
    if found < least:
        sys.exit(f"only {found} lines found: the search no longer fits the documents")
    sys.exit(1 if failures else 0)


def untried():
    """Places that name sbatch or qsub and a job script in a way that lines() does not see."""
    found = []
    documents = [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", *sorted((SOURCE / "docs").rglob("*.md"))]
    for document in [*documents, *sorted((SOURCE / "slurm").iterdir()), *sorted((SOURCE / "pbs").iterdir())]:
        text = document.read_text(encoding="utf-8").replace("\\\n", " ")
        for line in text.splitlines():
            for command in ("sbatch", "qsub"):
                calls = len(re.findall(rf"\b{command}\b(?! line)[^`\n]*?\b(?:slurm|pbs)/\w+\.(?:sh|pbs)", line))
                tried = [seen for _, seen in lines(command) if seen in line]
                found += [f"{document.relative_to(SOURCE)}: '{line.strip()}' is run by no test"] * (calls > len(set(tried)))
    return found


def make_tree(folder, convoy, preprocess):
    """A source tree to submit from, the stand-in's path, and a folder of programs for PATH."""
    tree, programs = folder / "tree", folder / "programs"
    tree.mkdir()
    programs.mkdir()
    for name in ("slurm", "pbs", "scripts", "configs", "packaging"):
        (tree / name).symlink_to(SOURCE / name)
    stand_in = programs / "stand-in"
    stand_in.write_text(STAND_IN.replace("@CONVOY@", convoy).replace("@PREPROCESS@", preprocess), encoding="utf-8")
    (programs / "apptainer").write_text(APPTAINER.replace("@STAND_IN@", str(stand_in)), encoding="utf-8")
    for program in programs.iterdir():
        program.chmod(0o755)
    return tree, stand_in, programs
