# SPDX-License-Identifier: Apache-2.0
"""Two jobs in one run directory: by mistake, by take-over, and as Slurm leaves them when it requeues the job of a node that was only cut off."""
import hashlib
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "end_to_end"))
from pace import crawl  # noqa: E402
from runner import CONVOY, check, everything, last, mpirun, records, run, same_bits, train, work_folder  # noqa: E402

JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 320, "--model", "lenet", "--batch-size", 8, "--lr", 0.01, "--skip-eval",
       "--save-every", 0, "--print-freq", 1, "--seed", 7]
ENDLESS = JOB + ["--epochs", 100000]


def start(folder, *words, env=None):
    """A job that has made some steps."""
    command = mpirun(2) + [CONVOY, "train", "--output-dir", folder, "--threads", "1", "--no-tensorboard"]
    job = subprocess.Popen(command + [str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           env=dict(os.environ, OMP_NUM_THREADS="1", **(env or {})))
    log = os.path.join(folder, "metrics.jsonl")
    begin = time.time()
    while job.poll() is None and time.time() - begin < 30:
        try:
            if len(records(folder, "train")) > 5 and os.path.exists(os.path.join(folder, "state.json")):
                return job
        except (OSError, ValueError):
            pass
        time.sleep(0.01)
    sys.exit(f"no steps in {log}: {job.communicate(timeout=30)}")


def ranks_of(folder):
    pids = subprocess.run(["pgrep", "-f", f"^{CONVOY} .*{folder} "], capture_output=True, text=True, check=False).stdout.split()
    return sorted(int(p) for p in pids)


def state(folder):
    with open(os.path.join(folder, "state.json"), encoding="utf-8") as file:
        return json.load(file)


def contents(folder):
    """Digests of all files that an old attempt must leave alone."""
    found = {}
    for path, _, files in os.walk(folder):
        for name in files:
            if name == "log.txt" or "heartbeats" in path or name == "0001.end.json":
                continue
            with open(os.path.join(path, name), "rb") as file:
                found[os.path.join(path, name)] = hashlib.sha256(file.read()).hexdigest()
    return found


def leaves(name, job, code, text, seconds=10):
    begin = time.time()
    _, err = job.communicate(timeout=60)
    check(job.returncode == code, f"{name}: exit code {job.returncode}, expected {code}" + ("" if job.returncode == code else "\n" + err))
    check(text in err, f"{name}: says '{text}'" + ("" if text in err else "\n" + err))
    check(time.time() - begin < seconds, f"{name}: ended after {time.time() - begin:.1f} s")


def mistake(folder):
    """The second job is refused, the first goes on; a third takes the run over, and the first leaves."""
    first = start(folder, *ENDLESS)
    step = state(folder)["step"]
    _, err = run(2, "train", "--output-dir", folder, *JOB, "--epochs", 1, "--resume", "auto", "--wait-for-other", 1, expect=2)
    check("is in use by attempt 1" in err and f"pid {state(folder)['pid']}" in err and "--take-over" in err, "second job: refused, with reason")
    check(err.count("error:") == 1, "second job: one rank speaks")
    check(not os.path.exists(f"{folder}/attempts/0002.json"), "second job: took no number")
    time.sleep(2.2)
    check(first.poll() is None and state(folder)["step"] > step, "first job: goes on")
    third = start(folder, *ENDLESS, "--resume", "auto", "--take-over")
    leaves("first job, taken over", first, 6, "attempt 2 continues this run")
    check(third.poll() is None and state(folder)["attempt"] == 2, "third job: owns the state")
    third.send_signal(signal.SIGUSR1)
    leaves("third job", third, 75, "")
    check(state(folder)["result"] == "stopped" and state(folder)["exit"] == 75 and state(folder)["stop"] == "SIGUSR1",
          "third job: its state says why it ended")
    with open(f"{folder}/attempts/0001.end.json", encoding="utf-8") as file:
        check(json.load(file)["result"] == "superseded", "first job: its end is recorded")


def at_once(folder):
    """Three starts in one run directory, without --take-over: one after the other. Two starts in one second without a directory: one each."""
    words = [CONVOY, "train", *map(str, JOB), "--epochs", "2", "--threads", "1", "--no-tensorboard", "--quiet"]
    env = dict(os.environ, OMP_NUM_THREADS="1")
    jobs = [subprocess.Popen(words + ["--output-dir", folder, "--resume", "auto"], env=env) for _ in range(3)]
    codes = sorted(job.wait(timeout=100) for job in jobs)
    check(set(codes) <= {0, 2} and 0 in codes, f"three starts: none supersedes another, exit codes {codes}")
    steps = [r["step"] for r in records(folder, "train")]
    check(steps == list(range(1, 81)), f"three starts: {len(steps)} steps, each once")
    check(not os.path.exists(f"{folder}/checkpoints.old-1"), "three starts: the finished run stays")
    jobs = [subprocess.Popen(words, env=env, cwd=folder) for _ in range(2)]
    check([job.wait(timeout=100) for job in jobs] == [0, 0] and len(os.listdir(f"{folder}/runs")) == 2, "two starts without a directory: one each")


def frozen(folder):
    """The job is frozen at any moment, its scheduler starts it again elsewhere, and then the first one wakes up."""
    end = JOB + ["--epochs", 5]
    saves = ["--save-every-steps", 1, "--resume", "auto"]
    train(2, f"{folder}-straight", *end)
    slurm = {"SLURM_JOB_ID": "77", "SLURM_JOB_NAME": "x"}
    first = start(folder, *end, *saves, *crawl(5), env=slurm)
    for pid in ranks_of(folder):
        os.kill(pid, signal.SIGSTOP)
    train(2, folder, *end, *saves, env=dict(slurm, SLURM_RESTART_COUNT="1"))
    before = contents(folder)
    for pid in ranks_of(folder):
        os.kill(pid, signal.SIGCONT)
    leaves("the woken job", first, 6, "attempt 2 continues this run")
    after = contents(folder)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    check(not changed, f"the woken job: changed none of {len(before)} files {changed}")
    check(same_bits(everything(last(folder)), everything(last(f"{folder}-straight"))), "the requeued job: the same bits as a straight run")
    check(state(folder)["attempt"] == 2 and state(folder)["result"] == "finished", "the requeued job: finished")


if __name__ == "__main__":
    with work_folder() as work:
        for case in sys.argv[1:] or ("mistake", "at_once", "frozen"):
            {"mistake": mistake, "at_once": at_once, "frozen": frozen}[case](f"{work}/{case}")
