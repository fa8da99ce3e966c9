# SPDX-License-Identifier: Apache-2.0
"""An installed tree: programs that run, experiments and job scripts, manual pages, completions; and the archive that cpack makes."""
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

from runner import CONVOY, PREPROCESS, SOURCE, check, mpirun, work_folder

BUILD = os.environ["CONVOY_BUILD"]
COMMANDS = re.findall(r"^  convoy ([a-z-]+) ", subprocess.run([CONVOY, "--help"], capture_output=True, text=True, check=True).stdout, re.M)


def said(*words, expect=0, **kwargs):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=100, check=False, **kwargs)
    if done.returncode != expect:
        check(False, f"{words}: exit {done.returncode}, expected {expect}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return done.stdout, done.stderr


def programs(prefix, work):
    check(said(prefix / "bin/convoy", "--version")[0] == said(CONVOY, "--version")[0], "the installed program is this build")
    check("convoy-preprocess " in said(prefix / "bin/convoy-preprocess", "--version")[0], "and so is convoy-preprocess")
    environment = dict(os.environ, PATH=f"{prefix}/bin:{os.environ['PATH']}", OMP_NUM_THREADS="1")
    said("convoy-preprocess", "synthetic", "--out", work / "data", "--samples", 64, "--val-samples", 16, "--partitions", 1, env=environment)
    said(*mpirun(2), "convoy", "train", "--config", prefix / "share/convoy/configs/tiny.cfg", "--data", work / "data", "--epochs", 1,
                  "--threads", 1, "--output-dir", work / "run", env=environment)
    out, _ = said("convoy", "status", work / "run", env=environment)
    check("finished" in out and (work / "run/checkpoints/last.h5").exists(), "two ranks train from the installed configuration")


def scripts(prefix, work):
    shutil.copytree(prefix / "share/convoy", work / "jobs")  # as a user does, who edits scripts/site.sh
    ask = '. scripts/site.sh && echo "$convoy $preprocess"'
    environment = {"PATH": f"{prefix}/bin:{os.environ['PATH']}"}
    check(said("bash", "-c", ask, cwd=work / "jobs", env=environment)[0] == f"{prefix}/bin/convoy {prefix}/bin/convoy-preprocess\n",
          "job scripts find the installed programs on the PATH")
    check("start it with 'sbatch" in said("bash", "slurm/cifar10.sh", cwd=work / "jobs", env=environment, expect=2)[1], "and run from a copy of their folder")
    source = pathlib.Path(SOURCE)
    wanted = [*source.glob("configs/*.cfg"), *source.glob("slurm/*.sh"), *source.glob("pbs/*.pbs")]
    there = [path for path in wanted if (work / "jobs" / path.relative_to(source)).read_bytes() == path.read_bytes()]
    check(len(there) == len(wanted) > 20, "configurations and job scripts are all there")


def pages(prefix):
    folder = prefix / "share/man/man1"
    names = sorted(page.name for page in folder.iterdir())
    check(names == sorted(["convoy.1", "convoy-preprocess.1", *(f"convoy-{command}.1" for command in COMMANDS)]) and len(names) > 14,
          f"a page for each command: {names}")
    documented = set(re.findall(r"--([a-z][a-z0-9-]+)", said(CONVOY, "train", "--help-all")[0]))
    text = (folder / "convoy-train.1").read_text(encoding="utf-8").replace("\\-", "-")
    options = [name for name in re.findall(r"\\fB--([a-z0-9-]+)\\fR", text) if not name.startswith("no-")]
    check(len(options) > 150 and set(options) <= documented and "batch-size" in options, f"with {len(options)} options of the tables")
    check((folder / "convoy-preprocess.1").read_text(encoding="utf-8").count("max\\-side\\fR") == 1, "options that several kinds share stand once")
    if shutil.which("groff") is None:
        print("skipped: groff, which would read the pages, is missing")
        return
    problems = [(page.name, said("groff", "-man", "-ww", "-Tascii", "-z", page)[1]) for page in folder.iterdir()]
    check(all(text == "" for _, text in problems), f"groff warns of no page: {[each for each in problems if each[1]]}")
    text, _ = said("groff", "-man", "-Tascii", "-P-cbou", folder / "convoy-train.1")
    check(re.search(r"^ +-b, --batch-size N$", text, re.M) and "NAME\n       convoy-train - " in text and "default: 90" in text, "the page reads as it should")


def completed(script, *words, program="convoy"):
    """What a tab at the end of the last word offers."""
    ask = (f"source {script}; COMP_WORDS=({' '.join(repr(w) for w in words)}); COMP_CWORD={len(words) - 1}; "
           f"_{program.replace('-', '_')}; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    return said("bash", "--norc", "-euc", ask)[0].split("\n")[:-1]


def completions(prefix, work):
    script = prefix / "share/bash-completion/completions/convoy"
    check(completed(script, "convoy", "ev") == ["evaluate"] and set(COMMANDS) <= set(completed(script, "convoy", "")), "bash completes commands")
    offered = completed(script, "convoy", "train", "--batch")
    check("--batch-size" in offered and all(word.startswith("--batch") for word in offered), f"options: {offered}")
    everything = set(completed(script, "convoy", "train", "--"))
    check({"--sync", "--synthetic", "--no-synthetic", "--config", "--help"} <= everything, "switches in both forms")
    accepted = set(said(CONVOY, "train", "--option-names")[0].split())
    check(everything <= accepted and len(everything) > 150, f"only options that the program takes: {sorted(everything - accepted)}")
    check(sorted(completed(script, "convoy", "train", "--sync", "")) == ["gradients", "weights"], "values")
    check(completed(script, "convoy", "train", "--sync", "=", "gr") == ["gradients"] and sorted(completed(script, "convoy", "train", "--sync", "=")) ==
          ["gradients", "weights"], "values behind an equals sign")
    check("resnet50" in completed(script, "convoy", "train", "--model", "resnet5"), "networks")
    (work / "my photos").mkdir()
    check(completed(script, "convoy", "train", "--data", f"{work}/my") == [f"{work}/my photos"], "paths with blanks")
    check(completed(script, "convoy", "evaluate", f"{work}/my") == [f"{work}/my photos"], "paths as arguments")
    check("scaling" in completed(script, "convoy", "bench", "s") and completed(script, "convoy", "train", "--lr", "") == [""], "words of a command; no guess at numbers")
    other = prefix / "share/bash-completion/completions/convoy-preprocess"
    check(completed(other, "convoy-preprocess", "folder", "--train-r", program="convoy-preprocess") == ["--train-ratio"] and
          sorted(completed(other, "convoy-preprocess", "folder", "--encoding", "", program="convoy-preprocess")) == ["jpeg", "raw"], "the other program's")
    check(said(CONVOY, "completion", "bash")[0] == script.read_text(encoding="utf-8"), "the program prints what was installed")
    check("use 'convoy completion bash' or 'zsh'" in said(CONVOY, "completion", "fish", expect=2)[1], "another shell is refused")
    check("use 'convoy-preprocess completion" in said(PREPROCESS, "completion", expect=2)[1], "and none")
    for name in ("_convoy", "_convoy-preprocess"):
        zsh = prefix / "share/zsh/site-functions" / name
        check(zsh.read_text(encoding="utf-8").startswith(f"#compdef {name[1:]}\n"), f"zsh's {name}")
        if shutil.which("zsh"):
            check(said("zsh", "-n", zsh) == ("", ""), "is in its syntax")


def archive(prefix, work):
    said("cpack", "--config", f"{BUILD}/CPackConfig.cmake", "-B", work / "packages")
    found = list((work / "packages").glob("*.tar.gz"))
    check(len(found) == 1, f"cpack makes one archive: {found}")
    with tarfile.open(found[0]) as tar:
        inside = {pathlib.PurePath(*pathlib.PurePath(member.name).parts[1:]) for member in tar if member.isfile()}
    installed = {path.relative_to(prefix) for path in prefix.rglob("*") if path.is_file()}
    check(inside == installed, f"with what an installation has: {sorted(map(str, inside ^ installed))}")


with work_folder() as work_:
    root, tree = pathlib.Path(work_), pathlib.Path(work_) / "usr"
    said("cmake", "--install", BUILD, "--prefix", tree)
    programs(tree, root)
    scripts(tree, root)
    pages(tree)
    completions(tree, root)
    archive(tree, root)
    staged = root / "stage"
    said("cmake", "--install", BUILD, "--prefix", "/opt/convoy", env=dict(os.environ, DESTDIR=str(staged)))
    check((staged / "opt/convoy/bin/convoy").exists() and (staged / "opt/convoy/share/man/man1/convoy.1").exists(), "DESTDIR stages all of it")
