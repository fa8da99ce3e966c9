# SPDX-License-Identifier: Apache-2.0
"""The program's own surface: help, version, wrong usage, dry run, plans, benchmarks; and names in documents and configs."""
import csv
import io
import json
import math
import os
import pathlib
import re
import subprocess
import tempfile
import time

import h5py
import numpy as np
from runner import CONVOY, PREPROCESS, SOURCE, check, mpirun, work_folder

ROOT = pathlib.Path(SOURCE)


# Options of launchers and scripts that documents name alone.
OTHERS = {"--oversubscribe", "--bind-to", "--map-by", "--allow-run-as-root", "--time", "--ntasks-per-node", "--cpus-per-task", "--gpus-per-node", "--signal",
          "--bind", "--nodes", "--array", "--mpi", "--requeue",
          "--rehearse"}


def call(*words, ranks=0, expect=0, env=None):
    """Without mpirun where ranks is 0. Returns stdout, stderr."""
    command = (mpirun(ranks) if ranks else []) + [CONVOY] + [str(w) for w in words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False,
                          env=dict(os.environ, OMP_NUM_THREADS="1", **(env or {})))
    said = f"convoy {' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    check(done.returncode == expect, f"exit {expect} of: convoy {' '.join(map(str, words))[:120]}"
          if done.returncode == expect else said)
    return done.stdout, done.stderr


def shell(line):
    """Exit code and stderr of a line of bash."""
    done = subprocess.run(["bash", "-c", line], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=50, check=False,
                          env=dict(os.environ, OMP_NUM_THREADS="1"))
    return done.returncode, done.stderr


def summary(out):
    """The comments of a dry run: name to text. Parts of the memory keep their indentation."""
    return dict(re.findall(r"^# ( *\S.*?)  +(\S.*)$", out, re.M))


def helps():
    out, _ = call("--help")
    for word in ("train", "evaluate", "bench", "inspect", "Exit codes", "75", "stopped on request"):
        check(word in out, f"--help names {word}")
    started = time.monotonic()
    out, _ = call("train", "--help")
    check(time.monotonic() - started < 1, "train --help starts no MPI")
    check("default: 90" in out and "EPOCHS" in out and "Exit codes" in out, "train --help has defaults, units, codes")
    check(len(re.findall(r"^  +(?:-\w, )?--[a-z]", out, re.M)) <= 28 and len(out.splitlines()) < 100, "and the options most used alone")
    check("--wd" not in out and "--wd" in call("train", "--help-all")[0], "other programs' names are in --help-all only")
    out, _ = call("train", "--help", "model")
    check("resnet" in out and "lenet" in out and "--stem" in out and "--lr" not in out, "train --help model: networks and their options alone")
    usual = call("train", "--help", "lr")[0]
    check(re.search(r"--lr F .*?\[default:\s+depends\s+on\s+--optimizer;\s+>\s+0\]", usual, re.DOTALL), "the rate's default is the optimizer's, not a number")
    out, _ = call("help", "train", "momentum")
    check("--momentum" in out and re.search(r"default:\s+0\.9", out) and "--local-momentum" in out and "--data" not in out, "help of a word")
    for words in (("train", "--help", "nonsense"), ("help", "train", "nonsense")):
        out, err = call(*words, expect=2)
        check("'nonsense'; topics: data, " in err and not out, "help of an unknown word: 2, and it names the topics")
    check("convoy has no command 'trian'; did you mean 'train'?" in call("--help", "trian", expect=2)[1], "help of an unknown command")
    helps_ = {words: subprocess.run([PREPROCESS, *words], capture_output=True, text=True, check=False) for words in (("--help", "folder"), ("folder", "--help"), ("--help", "foldr"))}
    folder = helps_["folder", "--help"]
    check(folder.stdout == helps_["--help", "folder"].stdout and folder.returncode == 0, "convoy-preprocess --help KIND is KIND --help")
    check(helps_["--help", "foldr"].returncode == 2 and "did you mean folder?" in helps_["--help", "foldr"].stderr, "and of an unknown kind an error")
    encoding = folder.stdout.split("--encoding raw|jpeg ")[1].split("\n      --sizes ")[0]
    check("else jpeg" in encoding and "--center-crop" in encoding and "[" not in encoding, "which says the encoding that counts")
    for command in ("evaluate", "bench", "inspect"):
        check(call(command, "--help")[0].startswith("Usage: "), f"{command} --help")
    out, _ = call("--help", ranks=2)
    check(out.count("Exit codes") == 1, "one rank alone answers --help")
    check(call("--version")[0] == call("inspect", "build")[0], "inspect build says what --version says")
    out, _ = call("--version")
    check(re.search(r"^convoy \d+\.\d+\.\d+ \((git [0-9a-f]{7,}(-dirty)?|no git)\)$", out, re.M), "--version: build id")
    for part in ("compiler: ", "MPI: Open MPI", "HDF5: ", "oneDNN", "CUDA", "NCCL"):
        check(part in out, f"--version names {part.strip()}")


def wrong_usage():
    call(expect=2)
    _, err = call("trian", expect=2)
    check("convoy has no command 'trian'; did you mean 'train'? See 'convoy --help'" in err, "nearest command")
    _, err = call("--data", "d", expect=2)
    check("'--data' is not a command; options follow the command, as in 'convoy train --data'" in err, "option before the command")
    _, err = call("train", "--synthetic", "--momentm", "0.9", ranks=3, expect=2)
    check(err.count("error: ") == 1 and "[rank 0/3 " in err, "rank 0 alone prints")
    check("did you mean '--momentum'?" in err, "nearest option")
    _, err = call("train", "--config", "/nowhere/x.cfg", ranks=2, expect=2)
    check(err.count("error: cannot read the file '/nowhere/x.cfg' (No such file or directory); check --config") == 1,
          "missing configuration file")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "my.cfg")
        with open(path, "w", encoding="utf-8") as file:
            file.write("synthetic = true\n[phase.1]\nepochs = 0:2\nlearning = 1\n")
        _, err = call("train", "-c", path, ranks=2, expect=2)
        check(f"{path}:4: learning = 1 (unknown key in a phase)" in err, "unknown key in a phase, with its line")
    _, err = call("train", "--synthetic", "--lr", "-1", expect=2)
    check("--lr -1 ('-1' is out of range); allowed: > 0" in err, "value out of range")
    _, err = call("train", "--synthetic", "--model", "resnett50", expect=2)
    check("unknown model 'resnett50'; did you mean 'resnet50'?" in err, "nearest network")
    _, err = call("bench", "disk", expect=2)
    check("it is one of compute, scaling, io, comm" in err, "unknown benchmark")
    _, err = call("inspect", "data", "/nowhere", expect=3)
    check("/nowhere" in err, "missing data set")


def odd_files():
    """Links to themselves, pipes and endless files as configuration: refused, and no wait that can't be ended."""
    with tempfile.TemporaryDirectory() as folder:
        os.symlink("loop", f"{folder}/loop")
        os.mkfifo(f"{folder}/pipe")
        _, err = call("train", "--config", f"{folder}/loop", ranks=2, expect=2)
        check("loop' (Too many levels of symbolic links)" in err, "a link to itself")
        _, err = call("train", "--config", "/dev/zero", expect=2)
        check("it is larger than" in err, "an endless file")
        with subprocess.Popen([CONVOY, "train", "--config", f"{folder}/pipe"], stderr=subprocess.PIPE, text=True) as waiting:
            time.sleep(2)
            check(waiting.poll() is None, "a pipe without a writer is waited for")
            waiting.terminate()
            check(waiting.wait(5) == 75 and "stopped on request" in waiting.stderr.read(), "until somebody asks to stop")
        code, _ = shell(f"'{CONVOY}' train --dry-run --dry-run-seconds 0 --config <(sleep 0.3; echo synthetic=true; echo model=lenet)")
        check(code == 0, "the shell's <(...) is a configuration")
        for option in ("--weights", "--resume"):
            _, err = call("train", "--synthetic", "--dry-run", "--dry-run-seconds", 0, option, f"{folder}/none.h5", expect=3)
            check("none.h5" in err, f"a dry run looks at {option}")
        done = subprocess.run([PREPROCESS, "cifar10", "--source", "/dev/zero", "--out", f"{folder}/out"], capture_output=True, text=True,
                              timeout=20, check=False)
        check(done.returncode == 3 and "pipe, socket or device" in done.stderr, "a device is no archive")
        os.mkdir(f"{folder}/run")
        job = ["train", "--synthetic", "--model", "lenet", "--batch-size", 8, "--synthetic-samples", 16, "--skip-eval", "--threads", 1, "--epochs", 2, "--output-dir", f"{folder}/run"]
        os.mkfifo(f"{folder}/run/log.txt")
        _, err = call(*job, expect=3)
        check("log.txt' (it is a named pipe, and must be a file); remove it" in err, "a pipe is no log")
        os.remove(f"{folder}/run/log.txt")
        for name in ("summary.csv.tmp", "metrics.jsonl", "excluded-hosts", "monitor.jsonl"):
            os.mkfifo(f"{folder}/run/{name}")
        call(*job, "--max-steps", 1)
        os.remove(f"{folder}/run/metrics.jsonl")
        os.mkfifo(f"{folder}/run/metrics.jsonl")
        _, err = call(*job, "--resume", "auto")
        check("metrics.jsonl' (it is a named pipe, and must be a file); remove it. The run continues without this file" in err, "nor a log of metrics")
        os.rename(f"{folder}/pipe", f"{folder}/train-00000-of-00001.h5")
        for words in ([PREPROCESS, "verify", folder], [CONVOY, "inspect", "data", folder]):
            done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
            check(done.returncode == 3 and "not a regular file" in done.stderr, f"a pipe is no partition ({words[1]})")


def lost_output():
    """What nobody gets is no success."""
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/data"
        subprocess.run([PREPROCESS, "synthetic", "--out", data, "--samples", "40", "--val-samples", "10"], check=True, capture_output=True)
        call("train", "--data", data, "-m", "lenet", "-b", 10, "--max-steps", 1, "--threads", 1, "-o", f"{folder}/run", "--image-size", 28)
        commands = [f"convoy {words}" for words in (
            "--help", "inspect build", f"inspect data {data}", f"inspect checkpoint {folder}/run", "inspect plan --model lenet",
            f"summary {folder}/run", f"train --data {data} -m lenet --dry-run --dry-run-seconds 0", f"evaluate {folder}/run --data {data}")]
        commands += [f"convoy-preprocess {words}" for words in ("--help", f"verify {data}", f"inspect {data}")]
        for i, command in enumerate(commands):
            program, words = command.split(" ", 1)
            command = f"'{CONVOY if program == 'convoy' else PREPROCESS}' {words}"
            where = (">/dev/full", ">&-")[i % 2]
            code, err = shell(f"{command} {where}")
            check(code == 3 and err.count("error: ") == 1 and "standard output" in err, f"{program} {words.split(' /')[0]} {where}" + (
                "" if code == 3 else f": {code} {err}"))
        code, _ = shell(f"'{CONVOY}' inspect data {data} | head -1 >/dev/null; exit ${{PIPESTATUS[0]}}")
        check(code in (0, 141), "a reader that leaves is no error")
        code, err = shell(f"'{CONVOY}' train --data {data} -m lenet -b 10 --max-steps 1 --threads 1 -o {folder}/log --image-size 28 >&-")
        check(code == 0 and os.path.exists(f"{folder}/log/checkpoints/last.h5"), "training needs no standard output")
        code, err = shell(f"ulimit -f 20; '{CONVOY}' train --data {data} -m lenet -b 10 --max-steps 1 --threads 1 -o {folder}/small --image-size 28")
        check(code == 3 and "File too large" in err, "a limit on file sizes is named")
        check(not [n for n in os.listdir(f"{folder}/small/checkpoints") if n.endswith(".tmp")], "and nothing is left behind")

        # A val split of another preparation.
        other = f"{folder}/other"
        subprocess.run([PREPROCESS, "synthetic", "--out", other, "--samples", "40", "--val-samples", "10", "--seed", "5"], check=True,
                       capture_output=True)
        for val in (name for name in os.listdir(other) if name.startswith("val-")):
            os.replace(f"{other}/{val}", f"{data}/{val}")
        _, err = call("train", "--data", data, "-m", "lenet", "--max-steps", 1, "-o", f"{folder}/mixed", expect=3)
        check("belong to different data sets" in err, "train: splits of two preparations")
        done = subprocess.run([PREPROCESS, "verify", data], capture_output=True, text=True, check=False)
        check(done.returncode == 3 and "belong to different data sets" in done.stderr, "verify: splits of two preparations")


def dry_runs():
    # He et al. 2016 and torchvision: 25,557,032 parameters and 4.09 GMAC for the form with the stride in the 3x3.
    out, _ = call("train", "--synthetic", "--synthetic-size", 224, "--synthetic-classes", 1000, "--dry-run", "--dry-run-seconds", 0,
                  "--model", "resnet50", "--resnet-version", "v1.5", "--batch-size", 4, "--replicas", 8,
                  "--synthetic-samples", 1000, "--lr-scaling", "linear", "--lr", 0.1, "--threads", 1)
    facts = summary(out)
    check(facts["parameters"] == "25557032", "resnet50 has 25557032 parameters")
    check(facts["forward"].startswith("4.089 GMAC per image = 8.178 GFLOP"), "resnet50 takes 4.089 GMAC")
    check(facts["global batch"] == "32" and facts["peak learning rate"] == "0.0125", "global batch and scaled learning rate")
    check(facts["steps per epoch"] == "32", "1000 images in steps of 32, the last one smaller")
    memory = {k: float(v.split()[0]) for k, v in facts.items() if v.split()[1:2] == ["MB"]}
    parts = sum(v for k, v in memory.items() if k != "memory per rank")
    check(abs(parts - memory["memory per rank"]) < 0.5, "parts of the memory add up")
    check(abs(memory["  parameters"] / (9 * 25557032 * 4 / 1e6) - 1) < 0.01, "8 replicas and the mean hold 9 sets")

    out, _ = call("train", "--synthetic", "--dry-run", "--dry-run-seconds", 0, "--model", "resnet20", "--global-batch", 64,
                  "--sync", "gradients", "--threads", 1, "--epochs", 3, "--optimizer", "muon", "--lr", 0.005, ranks=2)
    facts = summary(out)
    # The largest matrix has 64 x 576 numbers: twice, and two of 64 x 64.
    check(facts["  update"].startswith("0.3 MB"), "the update's memory is counted")
    check(facts["parameters"] == "272474", "resnet20 with 10 classes has 272474 parameters")
    check(facts["forward"].startswith("0.041 GMAC"), "resnet20 takes 0.041 GMAC")
    check("2 ranks, 2 replicas, batch 32 per replica" in facts["job"], "the global batch is dealt to the ranks")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "again.cfg")
        with open(path, "w", encoding="utf-8") as file:
            file.write(out)
        again, _ = call("train", "--dry-run", "--dry-run-seconds", 0, "--config", path, ranks=2)
        check(again == out, "a dry run's output is a configuration that repeats it")
    _, err = call("train", "--synthetic", "--dry-run", "--batch-size", 48, "--global-batch", 96, ranks=3, expect=2)
    check("48" in err and "96" in err, "batch sizes that don't fit are both printed")


def plans():
    out, _ = call("inspect", "plan", "--model", "resnet18", "--batch-size", 1, "--threads", 1)
    check("11689512 parameters in 62 tensors" in out and "1.814 GMAC" in out, "resnet18 as torchvision counts it")
    rows = re.findall(r"^(\S+) +(\d+ \d+ \d+) +(\d+) +(\d+) ", out, re.M)
    check(sum(int(r[2]) for r in rows) == 11689512, "parameters of the nodes add up")
    check(sum(int(r[3]) for r in rows) == 1814073344, "multiply-adds of the nodes add up")
    check(re.search(r"^conv1 +64 112 112 +9408 +118013952 ", out, re.M), "conv1 row")
    check("training program for 1 samples: cpu" in out, "the program is described")
    job = ["train", "--synthetic", "--model", "lenet", "--batch-size", 8, "--synthetic-samples", 16, "--max-steps", 1, "--skip-eval",
           "--save-every", 0, "--threads", 1, "--no-tensorboard", "--output-dir"]
    with work_folder() as folder:
        limited, _ = call(*job, f"{folder}/run", env={"CONVOY_MAX_CPU_ISA": "AVX2"})
        check(re.search(r"cpu oneDNN [\d.]+ AVX2 1 threads", limited), "CONVOY_MAX_CPU_ISA limits the instruction set")
        _, err = call(*job, f"{folder}/none", expect=2, env={"CONVOY_MAX_CPU_ISA": "AVX9"})
        check("CONVOY_MAX_CPU_ISA is 'AVX9'; use AVX2," in err, "and is refused if it names no set")
        empty, _ = call(*job, f"{folder}/empty", env={"CONVOY_MAX_CPU_ISA": ""})
        check("cpu oneDNN" in empty, "and is none if it is empty")


def benches():
    out, _ = call("bench", "comm", "--megabytes", 0.4, "--steps", 3, "--warmup-steps", 1, "--threads", 1, ranks=2)
    check(re.search(r"^ +400000 +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+$", out, re.M), "bench comm of one size")
    out, _ = call("bench", "comm", "--reproducible", "--megabytes", 0.4, "--steps", 2, "--threads", 1, ranks=3)
    check("fixed tree" in out, "bench comm over the fixed tree")
    out, err = call("bench", "io", "--synthetic", "--synthetic-samples", 200, "--batch-size", 10, "--steps", 5, ranks=2)
    check("make samples: 200 images" in out and "prepare batches: 100 images" in out, "bench io counts its images")
    check("the rate of 5 steps may be too high" in err, "bench io: few steps")
    check(re.search(r"per core: \d+ images/s", out) and re.search(r"limit: (memory|decode|resize|disk) \(", out), "and names the limit")
    for words in ([], ["--no-gradients"]):
        out, _ = call("bench", "compute", "--model", "lenet", "--batch-size", 8, "--steps", 3, "--warmup-steps", 1,
                      "--threads", 1, *words, ranks=2)
        total, ranks = re.search(r"images/s: ([\d.]+) in all; per rank: (.*)", out).groups()
        check(abs(float(total) - sum(map(float, ranks.split()))) < 0.2, "rates of the ranks add up")
        rate, seconds = map(float, re.search(r"per core: ([\d.]+) images/s \(by ([\d.]+) s of CPU time\)", out).groups())
        check(rate > 0 and abs(rate * seconds - 2 * 3 * 8) < 0.006 * rate + 1, "bench compute: images of 2 ranks by their CPU time")
        loss = float(re.search(r"loss ([\d.]+)", out).group(1))
        check(1 < loss < 4, "a new network's loss is near ln 10")
    out, _ = call("bench", "compute", "--forward", "--model", "resnet8", "--batch-size", 8, "--steps", 3, "--warmup-steps", 1, "--threads", 1, "--profile", ranks=2)
    plan, _ = call("models", "resnet8", "--format", "csv")
    macs = float(next(csv.DictReader(io.StringIO(plan)))["MMACs"])
    check(f"({2 * macs / 1e3:.3f} GFLOP per image)" in out and "2 ranks x batch 8, forward alone" in out, f"bench compute --forward: two FLOP for each of {macs} million MACs")
    check(" forward " in out and " backward " not in out, "and nothing runs backward")
    for model in ("squeezenet1_0", "squeezenet1_1", "alexnet", "vgg11"):  # without norms the start of the weights decides
        out, _ = call("bench", "compute", "--model", model, "--batch-size", 4, "--classes", 10, "--image-size", 64, "--steps", 1, "--warmup-steps", 0, "--threads", 1)
        loss = float(re.search(r"loss ([\d.]+)", out).group(1))
        check(abs(loss - math.log(10)) < 0.7, f"{model} starts with a loss of {loss}, near ln 10")
    with tempfile.TemporaryDirectory() as folder:
        out, _ = call("bench", "compute", "--model", "lenet", "--batch-size", 8, "--steps", 3, "--threads", 1, "--profile", "--csv",
                      f"{folder}/profile.csv", ranks=2)
        with open(f"{folder}/profile.csv", encoding="utf-8") as file:
            parts = list(csv.DictReader(file))
        image = float(re.search(r"\(([\d.]+) GFLOP per image\)", out).group(1))
        check(abs(sum(float(part["flop"]) for part in parts) / 8 / 1e9 - image) < 0.0006, "bench compute --profile: the FLOP of the parts are the step's")
        check({part["direction"] for part in parts} == {"forward", "backward"} and any("conv1" in part["nodes"] for part in parts), "names the nodes")
        rows = re.findall(r"^ +([\d.]+) +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+% +(?:forward|backward) ", out, re.M)
        check(len(rows) == len(parts) and sorted(map(float, rows), reverse=True) == list(map(float, rows)), "one line a part, once, the longest first")
        step = float(re.search(r"([\d.]+) +100.0  a step of 8 images", out).group(1))
        check(0 < sum(map(float, rows)) < 1.2 * step, "and they lie within the step")
        check(float(re.search(r"(-?[\d.]+) +-?[\d.]+  outside the parts", out).group(1)) >= 0, "what is outside the parts isn't negative")
    for words, wrong in ((("io", "--synthetic", "--profile"), "--profile is for 'convoy bench compute'"),
                         (("scaling", "--forward"), "--forward is for 'convoy bench compute'"), (("compute", "--forward", "--machine", "x"), "drop --forward"),
                         (("compute", "--forward", "--recompute", "all"), "--recompute has no effect on --forward"), (("comm", "--csv", "x"), "has no table for --csv")):
        _, err = call("bench", *words, expect=2)
        check(wrong in err, wrong)


def artifacts():
    with tempfile.TemporaryDirectory() as folder:
        data, out = f"{folder}/data", f"{folder}/run"
        subprocess.run([PREPROCESS, "synthetic", "--out", data, "--samples", "60", "--val-samples", "20", "--partitions", "3"],
                       check=True, capture_output=True)
        text, _ = call("inspect", "data", data)
        check("train: 60 images in 3 partitions, digest " in text and "val: 20 images in 1 partition, " in text,
              "inspect data: counts")
        check("train-00001-of-00003.h5  samples 20 to 39, " in text and text.count("seal ok") == 4, "inspect data: partitions")
        with h5py.File(f"{data}/train-00000-of-00003.h5") as file:
            mean = ", ".join(f"{m:.4f}" for m in file.attrs["mean"])
        check(f"mean        {mean} " in text, "inspect data: mean")

        call("train", "--data", data, "-m", "lenet", "-b", 10, "--max-steps", 2, "--threads", 1, "-o", out, "--quiet",
             "--image-size", 28, "--resume", "auto", ranks=2)
        text, _ = call("status", out)
        check("stopped by --max-steps 2 at step 2 of " in text and "finished" not in text, f"status of a part of a run: {text}")
        for path in (f"{out}/state.json", f"{out}/attempts/0001.end.json"):
            with open(path, encoding="utf-8") as file:
                ended = json.load(file)
            check((ended["result"], ended["exit"]) == ("limited", 0), f"{os.path.basename(path)} says that it is limited: {ended['result']}")
        text, _ = call("status", "--after", 0, "--attempts-before", 0, "--resubmissions", 9, out)
        check(text == "", "a job script does not submit it again")
        text, _ = call("summary", out)
        check(" stopped" in text and "finished" not in text, "summary of a part of a run")
        with open(f"{out}/metrics.jsonl", encoding="utf-8") as file:
            end = json.loads(file.read().splitlines()[-1])
        check(end["event"] == "end" and (end["result"], end["stop"]) == ("stopped", "--max-steps 2") and str(end["exit"]) == "0", f"and of its last event: {end}")
        text, _ = call("inspect", "checkpoint", out)
        check("replicas      2 (written by 2 ranks)" in text and "2 steps and 40 images in all" in text,
              "inspect checkpoint: position")
        check("\n  model = lenet\n" in text and "\nbuild         0." in text, "inspect checkpoint: configuration and build")
        with h5py.File(f"{out}/checkpoints/last.h5") as file:
            for name in ("parameters/conv1.weight", "optimiser/0/conv1.weight", "state"):
                norm = float(np.linalg.norm(file[name][()].astype(np.float64)))
                found = float(re.search(rf"^  /{re.escape(name)} .* norm (\S+)$", text, re.M).group(1))
                check(abs(found - norm) <= 1e-5 * norm, f"inspect checkpoint: norm of {name}")
        saved = f"{out}/config.cfg"
        text, _ = call("train", "--dry-run", "--dry-run-seconds", 0, "--config", saved, ranks=2)
        check("\nmodel = lenet\n" in text, "the configuration of a run is one for --config")
        with open(f"{out}/checkpoints/last.h5", "rb") as file:
            before = file.read()
        call("train", "--config", saved, "-o", f"{folder}/again", ranks=2)
        with open(f"{out}/checkpoints/last.h5", "rb") as file:
            check(file.read() == before and not os.path.exists(f"{out}/checkpoints.old-1"), "repeating a run leaves its checkpoints alone")
        check(os.path.exists(f"{folder}/again/checkpoints/last.h5"), "and writes its own")
        text, _ = call("evaluate", out, "--config", saved)
        check('"images":20,' in text, "the configuration of a run serves convoy evaluate")

        part = f"{data}/train-00001-of-00003.h5"
        with open(part, "r+b") as file:
            file.seek(700)
            byte = file.read(1)[0]
            file.seek(700)
            file.write(bytes([byte ^ 1]))
        _, err = call("inspect", "data", data, expect=3)
        check("train-00001-of-00003.h5" in err, "inspect data names a damaged partition")


def models():
    """Networks with torchvision's parameters and what it publishes."""
    rows = {row["network"]: row for row in csv.DictReader(io.StringIO(call("models", "--format", "csv")[0]))}
    for name, parameters, size, top1 in (("resnet50", 25557032, "224 x 224 x 3", "76.13"), ("inception_v3", 23834568, "299 x 299 x 3", "77.29"),
                                         ("vgg16", 138357544, "224 x 224 x 3", "71.59"), ("resnext101_64x4d", 83455272, "224 x 224 x 3", "83.25"), ("resnet20", 272474, "32 x 32 x 3", "")):
        row = rows[name]
        check((int(row["parameters"]), row["input"], row["published_top1"]) == (parameters, size, top1), f"models: {row}")
    check(abs(float(rows["resnet50"]["MMACs"]) - 4089.2) < 1, "multiply-adds of resnet50")
    table = call("models", "resnet218", "wrn22_8")[0].splitlines()
    check(len(table) == 3 and table[2].startswith("wrn22_8 "), "other depths than those listed")
    for words, text in ((("resnet50", "--num-layers", 18), "--num-layers 18 adds a depth to 'resnet50'"), (("--num-layers", 50), "give its name"),
                        (("resnet50_v2", "--resnet-version", "v1"), "'resnet50_v2' is a network with resnet-version v2")):
        check(text in call("models", *map(str, words), expect=2)[1], text)
    _, err = call("models", "regnet_y_4gf", expect=2)
    check("unknown model 'regnet_y_4gf'; networks of this family are regnet_y_400mf, " in err, "an unknown network: one of another number was not meant")


def names():
    """Every option that documents and configurations name is one of the program's."""
    commands = re.findall(r"^  convoy ([a-z-]+)", call("--help")[0], re.M)
    check(len(commands) >= 12, f"--help lists the commands: {commands}")
    known = {c: set(call(c, "--option-names")[0].split()) for c in commands}
    anywhere = set.union(*known.values()) | {"--version"}
    done = subprocess.run([PREPROCESS, "--help-all"], capture_output=True, text=True, check=False)
    anywhere |= set(re.findall(r"--[a-z][a-z-]+", done.stdout))
    anywhere |= OTHERS
    seen = 0
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if not path.exists():
            continue
        for span in re.findall(r"`([^`\n]+)`", path.read_text(encoding="utf-8")):
            # Options alone or of our programs; those of mpirun, srun, ctest ... stand behind their program's name.
            if not re.match(r"--|.*\bconvoy(-preprocess)? ", span):
                continue
            for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", span.split("convoy", 1)[-1]):
                seen += 1
                if option not in anywhere:
                    check(False, f"{path.relative_to(ROOT)} names {option}")
    for path in sorted((ROOT / "configs").glob("*.cfg")):
        for key in re.findall(r"^([a-z][\w-]*) *=", path.read_text(encoding="utf-8").split("[phase.")[0], re.M):
            seen += 1
            option = "--" + key.replace("_", "-")
            if option not in known["train"]:
                check(False, f"{path.name} sets {key}")
    check(seen > 50, f"{seen} names in documents and configurations exist")


for part in (helps, wrong_usage, odd_files, lost_output, dry_runs, plans, benches, artifacts, models, names):
    part()
