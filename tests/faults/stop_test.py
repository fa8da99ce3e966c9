# SPDX-License-Identifier: Apache-2.0
"""Stops at awkward moments: while samples load, in an evaluation, in `convoy evaluate` and convoy-preprocess, by the clock, asked for
twice. Usage: stop_test.py CASE."""
import glob
import json
import os
import signal
import subprocess
import sys
import time

import h5py

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "end_to_end"))
from runner import CONVOY, PREPROCESS, check, everything, last, mpirun, records, run, same_bits, train, work_folder  # noqa: E402

LONG = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 320, "--model", "lenet", "--batch-size", 8, "--epochs", 100000,
        "--lr", 0.01, "--skip-eval", "--save-every", 0, "--print-freq", 20]
TRAINS = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 8000, "--model", "resnet20", "--batch-size", 8, "--epochs", 2,
          "--limit-train-batches", 3, "--print-freq", 1, "--seed", 3]
EVALUATES = [*TRAINS, "--synthetic-samples", 16000, "--eval-batch-size", 1]


def start(*words, program=CONVOY, env=None):
    return subprocess.Popen(mpirun(2) + [program] + [str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=dict(os.environ, OMP_NUM_THREADS="1", **(env or {})))


def start_training(folder, *words, env=None):
    return start("train", "--output-dir", folder, "--threads", 1, "--no-tensorboard", *words, env=env)


def wait_for(job, condition, what):
    begin = time.time()
    while job.poll() is None and time.time() - begin < 30:
        try:
            if condition():
                return
        except (OSError, ValueError):  # not there yet, or half written
            pass
        time.sleep(0.005)
    sys.exit(f"{what} did not come: {job.poll()}\n{job.communicate(timeout=30)}")


def handles_signals(launcher):
    """Have two ranks of that mpirun begun to watch for SIGUSR1?"""
    ranks = subprocess.run(["pgrep", "-P", str(launcher), "-x", "convoy"], capture_output=True, text=True, check=False).stdout.split()
    caught = 0
    for rank in ranks:
        with open(f"/proc/{rank}/status", encoding="utf-8") as status:
            mask = next(line.split()[1] for line in status if line.startswith("SigCgt"))
        caught += bool(int(mask, 16) >> (signal.SIGUSR1 - 1) & 1)
    return caught == 2


def ends(name, job, code, seconds, *texts):
    begin = time.time()
    out, err = job.communicate(timeout=60)
    took = time.time() - begin
    check(job.returncode == code, f"{name}: exit code {job.returncode}, expected {code}" + ("" if job.returncode == code else out + err))
    check(took < seconds, f"{name}: ended after {took:.1f} s")
    for text in texts:
        check(text in out + err, f"{name}: says '{text}'" + ("" if text in out + err else "\n" + out + err))


def startup(work):
    """While the samples are made: nothing to save, nothing lost. Ctrl-C of one process, without mpirun, asks too."""
    alone = subprocess.Popen([CONVOY, "train", "--output-dir", f"{work}/alone", "--threads", "1", "--no-tensorboard", *map(str, LONG)],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    wait_for(alone, lambda: records(f"{work}/alone", "train"), "a step")
    alone.send_signal(signal.SIGINT)
    ends("Ctrl-C", alone, 75, 5, "SIGINT: stopping after this step, with a checkpoint; another one ends it at once\n", "stopped on request (SIGINT)")
    check(os.path.exists(last(f"{work}/alone")), "Ctrl-C: a checkpoint")
    job = start_training(f"{work}/startup", *LONG, "--synthetic-samples", 1000000)
    wait_for(job, lambda: os.path.exists(f"{work}/startup/log.txt"), "the run directory")
    time.sleep(0.1)
    job.send_signal(signal.SIGUSR1)
    ends("stop at start-up", job, 75, 5, "SIGUSR1", "before the first step")
    check(not glob.glob(f"{work}/startup/checkpoints/*.h5"), "stop at start-up: no checkpoint")


def evaluation(work):
    """In an evaluation (mpirun itself takes 2 s to end), which is then done again by the job that goes on."""
    train(2, f"{work}/straight", *EVALUATES)
    folder = f"{work}/evaluation"
    for epoch in (1, 2):
        job = start_training(folder, *EVALUATES, "--resume", "auto")
        wait_for(job, lambda epoch=epoch: len(records(folder, "epoch")) == epoch, "the end of an epoch")
        time.sleep(0.05)
        job.send_signal(signal.SIGUSR1)
        ends(f"stop in evaluation {epoch}", job, 75, 5, "SIGUSR1")
        check(len(records(folder, "val")) == epoch - 1, f"stop in evaluation {epoch}: it was not finished")
    train(2, folder, *EVALUATES, "--resume", "auto")
    check(same_bits(everything(last(folder)), everything(last(f"{work}/straight"))), "stops in evaluation: the same bits")
    counts = [[(r["epoch"], r["top1_count"]) for r in records(f, "val")] for f in (folder, f"{work}/straight")]
    check(counts[0] == counts[1], f"stops in evaluation: the same validations {counts[0]}")


def counts(work):
    """In an evaluation in the middle of an epoch: what it has counted belongs to no step of the epoch that goes on."""
    words = [*EVALUATES, "--synthetic-samples", 48000, "--limit-train-batches", 6, "--epochs", 1, "--val-interval", 0.5, "--print-freq", 3]
    train(2, f"{work}/straight", *words)
    folder = f"{work}/counts"
    job = start_training(folder, *words)

    wait_for(job, lambda: records(folder, "train"), "the last step before the evaluation")
    time.sleep(0.05)
    job.send_signal(signal.SIGUSR1)
    ends("stop in the middle of an epoch", job, 75, 5, "SIGUSR1")
    check(not records(folder, "val"), "it was not finished")
    with h5py.File(last(folder), "r") as file:
        held = json.loads(file.attrs["meta"])["numbers"]["epoch_images"]
    check(held == 48, f"3 steps of 16 images are saved with the epoch, not those that were evaluated: {held}")
    train(2, folder, *words, "--resume", "auto")
    told = [[(r["images"], r["loss"], r["top1"]) for r in records(f, "epoch")] for f in (folder, f"{work}/straight")]
    check(told[0] == told[1] and told[0][0][0] == 96, f"the epoch's images, loss and top-1 are those of a run without a stop: {told}")


def limits(work):
    """The wall clock alone: no signal. A late stop would be one after the limit."""
    local = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 10))
    cases = {"time-limit": (["--time-limit", "00:06"], {}, time.time() + 6.5),
             "slurm": ([], {"SLURM_JOB_END_TIME": str(int(time.time() + 8))}, time.time() + 8),
             "end-time": (["--end-time", local], {}, time.time() + 10)}
    jobs = {}
    for name, (words, env, _) in cases.items():  # side by side: they only wait for the clock
        jobs[name] = start_training(f"{work}/{name}", *LONG, "--end-margin", 1, *words, env=env)
    for name, (_, _, limit) in cases.items():
        ends(f"limit by {name}", jobs[name], 75, 20, "time limit")
        saved = os.path.getmtime(last(f"{work}/{name}"))  # mpirun needs up to 2 s more to end
        check(limit - 6 < saved < limit, f"limit by {name}: a checkpoint {limit - saved:.1f} s before it")


def programs(work):
    """convoy evaluate and convoy-preprocess."""
    train(2, f"{work}/run", *TRAINS, "--skip-eval")
    job = start("evaluate", f"{work}/run", "--output-dir", f"{work}/result", "--batch-size", 1)
    wait_for(job, lambda: handles_signals(job.pid), "both ranks")
    job.send_signal(signal.SIGUSR1)
    ends("convoy evaluate", job, 75, 5, "SIGUSR1")
    check(not os.path.exists(f"{work}/result/result.json"), "convoy evaluate: no result")

    words = ["synthetic", "--samples", 40000, "--val-samples", 10, "--image-size", 32, "--partitions", 24]
    job = start(*words, "--out", f"{work}/data", program=PREPROCESS)
    wait_for(job, lambda: glob.glob(f"{work}/data/train-*.h5"), "a partition")
    rank = subprocess.run(["pgrep", "-f", f"^{PREPROCESS} .*{work}/data"], capture_output=True, text=True, check=True).stdout.split()[0]
    os.kill(int(rank), signal.SIGINT)
    ends("convoy-preprocess", job, 75, 5, "stopped on request (SIGINT)")
    check(not glob.glob(f"{work}/data/*.tmp"), "convoy-preprocess: nothing half-written")
    check(len(glob.glob(f"{work}/data/*.h5")) < 25, "convoy-preprocess: it was in the middle")
    out, _ = run(2, *words, "--out", f"{work}/data", program=PREPROCESS)
    check("25 partitions made" not in out and "kept" in out, "convoy-preprocess: goes on")
    run(2, "verify", f"{work}/data", program=PREPROCESS)
    run(2, *words, "--out", f"{work}/again", "--time-limit", "0.5", program=PREPROCESS, expect=75)


def twice(work):
    """A program that can't stop (its peer hangs, or it does) ends when it is asked again; Ctrl-C at once."""
    alone = subprocess.Popen([CONVOY, "train", "--output-dir", f"{work}/alone", "--threads", "1", "--no-tensorboard", *map(str, LONG),
                              "--print-freq", "1", "--inject-fault", "stall@0@9"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=dict(os.environ, OMP_NUM_THREADS="1"))
    wait_for(alone, lambda: len(records(f"{work}/alone", "train")) >= 8, "step 8")
    alone.send_signal(signal.SIGINT)
    time.sleep(0.5)
    check(alone.poll() is None, "Ctrl-C of a step that hangs: it waits for it")
    alone.send_signal(signal.SIGINT)
    ends("the second Ctrl-C", alone, -signal.SIGINT, 3)
    folder = f"{work}/twice"
    job = start_training(folder, *LONG, "--print-freq", 1, "--inject-fault", "stall@1@9")
    wait_for(job, lambda: len(records(folder, "train")) >= 8, "step 8")
    job.send_signal(signal.SIGUSR1)
    job.send_signal(signal.SIGUSR1)
    time.sleep(1)
    job.send_signal(signal.SIGUSR1)
    check(job.poll() is None, "asked twice at once: it goes on")
    time.sleep(1.5)
    job.send_signal(signal.SIGUSR1)
    begin = time.time()
    job.communicate(timeout=20)
    check(job.returncode not in (0, 75) and time.time() - begin < 5, f"asked again later: ended with {job.returncode}")


if __name__ == "__main__":
    cases = {f.__name__: f for f in (startup, evaluation, counts, limits, programs, twice)}
    with work_folder() as work_path:
        for case in sys.argv[1:] or cases:
            cases[case](work_path)
