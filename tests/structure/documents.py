# SPDX-License-Identifier: Apache-2.0
"""What documents, scripts and configurations say exists: files, options, experiments that the program accepts."""
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../slurm"))
from document_lines import untried  # noqa: E402

ROOT = pathlib.Path(os.environ["CONVOY_SOURCE"])
PROGRAMS = {"convoy": os.environ["CONVOY"], "convoy-preprocess": os.environ["CONVOY_PREPROCESS"]}
problems = []
helps = {}


def options_of(program, command):
    """Long options that --help-all of a command names; None where there is no such command."""
    if (program, command) not in helps:
        done = subprocess.run([PROGRAMS[program], command, "--help-all"], capture_output=True, text=True, timeout=60)
        options = set(re.findall(r"--([a-z][a-z0-9-]+)", done.stdout))
        helps[program, command] = options | {"help"} if done.returncode == 0 else None
    return helps[program, command]


# In documents `convoy train ...`; in scripts the program stands in a variable, `"$convoy" train ...`.
CALL = {".md": re.compile(r"(?:^|\s)(convoy(?:-preprocess)?) +([a-z0-9-]+)((?: +[^|;&#`]*)?)"),
        ".sh": re.compile(r"\"\$(convoy|preprocess)\" +([a-z0-9-]+)((?: +[^|;&#`]*)?)")}


def commands_of(text, pattern):
    """(program, command, options) of every call in a text; a backslash joins lines."""
    for line in text.replace("\\\n", " ").splitlines():
        for program, command, rest in pattern.findall(line):
            program = "convoy-preprocess" if program == "preprocess" else program
            yield program, command, re.findall(r"(?<!\S)--([a-z][a-z0-9-]+)", rest)


def code_of(name, text):
    """Of Markdown only the fenced blocks."""
    return "\n".join(re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)) if name.endswith(".md") else text


documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")),
             *sorted((ROOT / "slurm").glob("*")), *sorted((ROOT / "pbs").glob("*")), ROOT / "scripts/quickstart.sh"]
calls = 0
for document in documents:
    name, text = document.relative_to(ROOT).as_posix(), document.read_text(encoding="utf-8")
    for program, command, options in commands_of(code_of(name, text), CALL[".md" if name.endswith(".md") else ".sh"]):
        if command.startswith("-"):  # convoy --version
            continue
        calls += 1
        known = options_of(program, command)
        if known is None:
            problems.append(f"{name}: '{program} {command}' is no command")
            continue
        # --no-X is the other form of a switch.
        for option in options:
            if option not in known and option.removeprefix("no-") not in known:
                problems.append(f"{name}: '{program} {command}' has no option --{option}")
    for path in re.findall(r"(?<![\w/.])((?:scripts|configs|slurm|pbs|docs|bench|tests)/[\w./-]*\w)", text):
        if not (ROOT / path).exists():
            problems.append(f"{name}: {path} does not exist")
    if name.endswith(".md"):
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            if not (document.parent / link).exists():
                problems.append(f"{name}: link to {link}, which does not exist")
if calls < 5:
    problems.append(f"only {calls} calls found in the documents: the search no longer fits them")

# Every experiment is accepted by the program, resolved and planned, for images of the kind it is for.
KINDS = {"tiny": [], "mnist": ["--synthetic-size", "28", "--synthetic-channels", "1"],
         "cifar10": ["--synthetic-size", "32"], "cifar100": ["--synthetic-size", "32", "--synthetic-classes", "100"],
         "imagenet": [], "finetune": []}
for config in sorted((ROOT / "configs").glob("*.cfg")):
    call = [PROGRAMS["convoy"], "train", "--config", str(config), "--synthetic", "--dry-run", "--dry-run-seconds", "0", "--threads", "1",
            *KINDS[config.stem.split("_")[0]]]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        problems.append(f"configs/{config.name}: refused: {done.stderr.strip()[-300:]}")

# The others are run by slurm.documents and pbs.documents.
problems += untried()

for problem in problems:
    print(problem, file=sys.stderr)
sys.exit(1 if problems else 0)
