# SPDX-License-Identifier: Apache-2.0
"""What tells about runs: the forecast of a dry run and of a run's first lines, convoy status, convoy summary, convoy report, bench scaling.
Usage: report_test.py [CASE ...]; bench/forecast.sh asks how far forecasts are off."""
import csv
import html.parser
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time

from pace import crawl
from runner import CONVOY, check, mpirun, records, run, train, work_folder

JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 2560, "--model", "resnet20", "--batch-size", 32, "--epochs", 3,
       "--val-interval", 1]


def seconds_of(text):
    """`12.3 s`, `0:03:12`."""
    if text.endswith(" s"):
        return float(text[:-2])
    total = 0.0
    for part in text.split(":"):
        total = 60 * total + float(part)
    return total


def foretell(work, samples=2560):
    """Percent by which a dry run and a run's first lines were off, and a number of samples with which a run is long enough to be foretold."""
    def ask():
        job = [*JOB, "--synthetic-samples", samples]
        text, _ = run(2, "train", *job, "--threads", 1, "--output-dir", f"{work}/dry", "--dry-run")
        return job, text, seconds_of(re.search(r"^# forecast .*, to the end of the run (.+)$", text, re.M)[1])

    job_, dry, left = ask()
    if left < 8:  # first lines need three seconds of steps: more images on a machine that is so fast
        samples = int(samples * 10 / left) // 64 * 64
        job_, dry, left = ask()
    check(re.search(r"ask for 00:0\d:00", dry) is not None, "the dry run says what time to ask for")
    check(sorted(os.listdir(work)) == [], "the dry run leaves nothing behind")
    start = seconds_of(re.search(r"^# measured .*, (.+) to start", dry, re.M)[1])
    job = subprocess.Popen([*mpirun(2), CONVOY, "train", *map(str, job_), "--threads", "1", "--no-tensorboard", "--output-dir", f"{work}/run"],
                           stdout=subprocess.PIPE, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    began, told = time.monotonic(), None
    for line in job.stdout:
        if told is None and (found := re.search(r"^forecast: .*, to the end of the run (.+)$", line)):
            told, at = seconds_of(found[1]), time.monotonic()
    check(job.wait() == 0, "the run ends well")
    ended = time.monotonic()
    error = abs(left + start - (ended - began)) / (ended - began) * 100
    print(f"the dry run foretold {left + start:.1f} s, the run took {ended - began:.1f} s ({error:.1f} % off)", flush=True)
    later = abs(told - (ended - at)) / (ended - at) * 100
    print(f"its first lines foretold {told:.1f} s, it took {ended - at:.1f} s ({later:.1f} % off)", flush=True)
    return error, later, samples


def forecasts(work):
    error, later, samples = foretell(work)
    check(max(error, later) < 60, "forecasts say what will come, on a machine that other tests may use too")
    hasty = {"OMPI_MCA_odls_base_sigkill_timeout": "0"}
    out, _ = train(2, f"{work}/short", *JOB, "--synthetic-samples", samples, "--epochs", 9, "--time-limit", 12, expect=None, env=hasty)
    check(out.count("mpirun kills the ranks 0 s after it has handed SIGTERM or Ctrl-C on") == 1, "a run says once that its launcher leaves it no time")
    too_short = "more job" in out and re.search(r"ask for 00:0\d:00", out) is not None
    check("is enough for the whole run" in out or too_short, "a run says what its time limit means")


def status(folder, *words):
    done = subprocess.run([CONVOY, "status", *words, folder], capture_output=True, text=True, timeout=30, check=False)
    return done.returncode, done.stdout + done.stderr


def statuses(work):
    code, text = status(f"{work}/run")
    check(code == 0 and "finished" in text and "100.0 %: epoch 3 of 3" in text, "status of a finished run: 0")
    code, text = status(work)
    check(code == 2 and "has no state.json" in text, "status of another folder: 2")
    folder = f"{work}/watched"
    command = mpirun(2) + [CONVOY, "train", *map(str, JOB), *crawl(30, 0.1), "--epochs", "200", "--output-dir", folder, "--threads", "1", "--print-freq", "5",
                           "--save-every-steps", "10", "--no-tensorboard", "--stall-warning-seconds", "2"]
    job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        end = time.monotonic() + 60
        while "checkpoint  checkpoints/" not in status(folder)[1] and time.monotonic() < end:
            time.sleep(0.2)
        code, text = status(folder)
        check(code == 0 and "running" in text and "images/s" in text and "written in" in text, "status of a living run: 0, speed and checkpoint")
        state = json.loads(status(folder, "--json")[1])
        check(state["life"] == "running" and state["step"] > 0 and state["ranks"] == 2, "the same as JSON")
        other = [int(p) for p in os.listdir("/proc") if p.isdigit() and is_rank(p, folder) and int(p) != state["pid"]]
        os.kill(other[0], signal.SIGSTOP)
        end = time.monotonic() + 30
        while status(folder)[0] == 0 and time.monotonic() < end:
            time.sleep(0.5)
        code, text = status(folder)
        check(code == 5 and "hanging" in text and "rank 1 on" in text, "status names a rank that was frozen: 5")
        os.kill(other[0], signal.SIGCONT)
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    for pid in [p for p in os.listdir("/proc") if p.isdigit() and is_rank(p, folder)]:
        os.kill(int(pid), signal.SIGKILL)
    end = time.monotonic() + 10
    while status(folder)[0] != 75 and time.monotonic() < end:  # killed processes are seen until their parent has looked
        time.sleep(0.2)
    code, text = status(folder)
    check(code == 75 and "ended without a record of its end" in text, f"status of a run that was killed: {code}" + ("" if code == 75 else text))
    with subprocess.Popen([CONVOY, "--version"], stdout=subprocess.DEVNULL) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # a process that is gone, of which its parent has not heard
        state = json.load(open(f"{folder}/state.json", encoding="utf-8"))
        with open(f"{folder}/state.json", "w", encoding="utf-8") as file:
            json.dump({**state, "pid": ended.pid, "updated": time.time()}, file)
        code, text = status(folder)
    check(code == 75 and "ended without a record of its end" in text, f"status of a run whose process nobody has buried: {code}" + ("" if code == 75 else text))
    check("process " in text and " of rank 0 is gone" in text and len(re.findall(r"rank [01] on \S+: last heartbeat \S+ ago in ", text)) == 2,
          f"and what is known of its end: {text}")
    code, text = status(folder, "--after", "137")
    check(code == 75 and "it continues" in text, "what follows: submit it again")
    text = status(folder)[1]
    check("its launcher ended with code 137 (128 + signal 9)" in text, f"the launcher's code is remembered: {text}")
    check(json.loads(status(folder, "--json")[1])["launcher_code"] == 137, "as JSON, too")


def is_rank(pid, folder):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
        return words[0] == CONVOY.encode() and folder.encode() in words
    except OSError:
        return False


def summaries(work):
    train(1, f"{work}/a,b", *JOB, "--epochs", 1)
    os.mkdir(f"{work}/empty")
    done = subprocess.run([CONVOY, "summary", f"{work}/run", f"{work}/empty", f"{work}/a,b", f"{work}/watched", "--format", "csv"], capture_output=True,
                          text=True, check=True)
    rows = {row["run"]: row for row in csv.DictReader(done.stdout.splitlines())}
    check(sorted(rows) == [f"{work}/a,b", f"{work}/run", f"{work}/watched"], "summary as CSV")
    rows = [rows[f"{work}/{name}"] for name in ("run", "a,b", "watched")]
    check([row["epochs_done"] for row in rows[:2]] == ["3", "1"] and [row["epochs"] for row in rows[:2]] == ["3", "1"], "with the epochs of each, done and asked for")
    check(f"'{work}/empty' is left out" in done.stderr, "folders without a run are left out and named")
    check(rows[2]["result"] == "lost", "a killed run is lost")
    with open(f"{work}/run/summary.csv", encoding="utf-8") as file:
        best = max(float(row["val_top1"]) for row in csv.DictReader(file))
    check(abs(float(rows[0]["top1"]) - best) < 0.006 and rows[0]["result"] == "finished", "with the best accuracy and the result")
    done = subprocess.run([CONVOY, "summary", f"{work}/run", "--format", "markdown", "--per-epoch"], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    check(len(lines) == 5 and all(line.startswith("| ") and line.count("|") == lines[0].count("|") for line in lines), "a row an epoch as Markdown")


class Page(html.parser.HTMLParser):
    """Cells of the tables row by row, words outside of them, how often each element stands, and what is left open."""
    def __init__(self, path):
        super().__init__()
        self.rows, self.words, self.counts, self.open, self.outside = [], "", {}, [], []
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.outside += [value for name, value in attrs if name in ("src", "href", "data") or "url(" in (value or "")]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in ("meta", "link", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_endtag(self, tag):
        if self.open[-1:] != [tag]:
            check(False, f"report: '{tag}' closes what was opened: {self.open}")
        self.open.pop()

    def handle_data(self, data):
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data
        else:
            self.words += data

    def row(self, name):
        return next(row for row in self.rows if row[0] == name)


def pages(work):
    folder = f"{work}/a,b"
    os.makedirs(f"{folder}/evaluation")
    with open(f"{folder}/evaluation/result.json", "w", encoding="utf-8") as file:
        json.dump({"split": "val", "images": 10, "top1": 70.0, "loss": 0.5, "checkpoint": "best.h5"}, file)
    with open(f"{folder}/evaluation/confusion.csv", "w", encoding="utf-8") as file:
        file.write('label,"cat, black",<b>&"dog"\n"cat, black",4,1\n<b>&"dog",2,3\n'.replace('<b>&"dog"', '"<b>&""dog"""'))
    done = subprocess.run([CONVOY, "report", f"{work}/run", work, folder, f"{work}/watched", "-o", f"{work}/report.html"], capture_output=True, text=True,
                          check=True)
    check(done.stdout == f"{work}/report.html\n" and f"'{work}' is left out" in done.stderr, "report names its file, and folders without a run")
    page = Page(f"{work}/report.html")
    check(not page.open and not page.outside and "script" not in page.counts, "report: all is closed, nothing is fetched, nothing runs")
    with open(f"{work}/run/summary.csv", encoding="utf-8") as file:
        best = max(float(row["val_top1"]) for row in csv.DictReader(file))
    row = page.row(f"{work}/run")
    check(row[1].startswith("resnet20") and row[4] == "3" and row[6] == f"{best:.2f} %" and row[-1] == "finished", f"report: the row of a run: {row}")
    check(page.row("epochs")[1:3] == ["3", "1"] and not [row for row in page.rows if row[0] == "model" and len(row) > 2], "report: what differs, and only that")
    check("ended without a record of its end" in page.words, "report: why a run is lost")
    check(page.row("cat, black")[1:] == ["4", "5", "80.0"] and page.row('<b>&"dog"')[1:] in (["3", "5", "60.0"], ["cat, black", "2"]),
          "report: classes with their own names")
    # Per run with epochs: loss, top-1, rate and speed in four pictures; three bars; the matrix has four squares and a frame.
    check(page.counts["path"] >= 12 and page.counts["circle"] >= 8, f"report: curves: {page.counts}")
    check(os.path.getsize(f"{work}/report.html") < 200000, "report: a small file")
    with open(f"{folder}/evaluation/confusion.csv", "a", encoding="utf-8") as file:
        file.write("more,1\n")
    done = subprocess.run([CONVOY, "report", folder], capture_output=True, text=True, check=True)
    check("rows of different lengths" in Page(done.stdout.strip()).words, "report: a matrix that is none is named in the page")


def facts(work):
    """What metrics.jsonl and environment.json tell of a job's machine."""
    folder = f"{work}/facts"
    train(3, folder, "--synthetic", "--synthetic-size", 16, "--synthetic-samples", 96, "--model", "lenet", "--batch-size", 8, "--epochs", 2, "--print-freq", 1,
          "--sync", "gradients", env={"NCCL_DEBUG": "WARN", "UCX_SECRET": "abc", "LOADEDMODULES": "gcc/12"})
    epochs = records(folder, "epoch")
    check(len(epochs) == 2 and all(1e6 < epoch["peak_memory"] <= epoch["peak_memory_max"] for epoch in epochs), "peak memory of rank 0, and the largest of all")
    with open(f"{folder}/environment.json", encoding="utf-8") as file:
        environment = json.load(file)
    variables = environment["variables"]
    check(variables["NCCL_DEBUG"] == "WARN" and variables["LOADEDMODULES"] == "gcc/12" and variables["OMP_NUM_THREADS"] == "1" and "driver" in environment,
          "variables of the job")
    check("UCX_SECRET" not in variables and "PATH" not in variables and not any("TRANSPORTS" in name.upper() for name in variables), "and no secrets")


def scaling(work):
    path = f"{work}/scaling.csv"
    out, _ = run(3, "bench", "scaling", "--model", "resnet8", "--batch-size", 12, "--steps", 2, "--threads", 1, "--csv", path)
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    check([row["ranks"] for row in rows] == ["1", "2", "3"] and all(float(row["images_per_sec"]) > 0 for row in rows), "bench scaling: 1, 2, 3 ranks")
    check(all(abs(float(row["speedup"]) - float(row["images_per_sec"]) / float(rows[0]["images_per_sec"])) < 0.01 for row in rows), "speed-up")
    check(out.count("%") == 3, "the same table on the console")
    _, err = run(2, "bench", "scaling", "--device", "cuda", "--model", "resnet8", env={"CUDA_VISIBLE_DEVICES": ""}, expect=4)
    check(err.count("error") == 1, "what one rank can't do ends the job, and is said once")
    os.mkfifo(f"{work}/pipe")
    os.symlink("scaling.csv", f"{work}/link.csv")
    _, err = run(1, "bench", "scaling", "--model", "lenet", "--csv", f"{work}/pipe", expect=2)
    check("pipe, socket or device" in err and stat.S_ISFIFO(os.stat(f"{work}/pipe").st_mode), "a pipe is no file for the table, and stays one")
    path = f"{work}/link.csv"
    out, _ = run(2, "bench", "scaling", "--strong", "--model", "resnet8", "--batch-size", 12, "--steps", 2, "--threads", 1, "--csv", path)
    with open(path, encoding="utf-8") as file:
        check([row["global_batch"] for row in csv.DictReader(file)] == ["12", "12"], "--strong keeps the global batch")
    check(os.path.islink(path), "a link stays one")


if __name__ == "__main__":
    with work_folder() as work_:
        cases = {case.__name__: case for case in (forecasts, statuses, summaries, pages, facts, scaling)}
        for name in sys.argv[1:] or cases:
            cases[name](work_)
