# SPDX-License-Identifier: Apache-2.0
"""A run that is stopped in random ways at random moments, and started again each time, ends with the same bits and the same log as one
that was left alone, and never goes back behind a checkpoint that it called durable. Disks are slow here,
so that writing is caught at it; the replicas of local SGD have shards. Usage: durable_test.py [STOPS] (default 20). CONVOY_TEST_SEED
chooses others."""
import collections
import glob
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "end_to_end"))
from runner import CONVOY, check, everything, last, mpirun, records, same_bits, train, work_folder  # noqa: E402

JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 400, "--model", "resnet8", "--batch-size", 8, "--epochs", 3, "--lr", 0.05,
       "--flip", "random", "--pad", 2, "--print-freq", 1, "--seed", 11, "--eval-batch-size", 2, "--keep-checkpoints", 2]
MODES = {
    "gradients": ["--sync", "gradients"],
    "weights": ["--sync", "weights", "--local-steps", 3],  # saves fall into the middle of a period: every replica has a shard
}
SAVES = ["--save-every-steps", 3, "--resume", "auto"]
# Writing takes long enough to be caught at it.
SLOW_DISK = {"LD_PRELOAD": os.path.join(os.environ["CONVOY_BUILD"], "tests", "libconvoy_failing_calls_preload.so"),
             "CONVOY_FAILING_CALLS": "fsync:.h5:25ms"}


def ranks_of(folder):
    pids = subprocess.run(["pgrep", "-f", f"^{CONVOY} .*{folder} "], capture_output=True, text=True, check=False).stdout.split()
    return sorted(int(p) for p in pids)


def state(folder):
    try:
        with open(os.path.join(folder, "state.json"), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def usr1_mpirun(job, folder, rng):
    send(job.pid, signal.SIGUSR1)


def term_mpirun(job, folder, rng):
    send(job.pid, signal.SIGTERM)


def usr1_rank(job, folder, rng):
    for pid in rng.sample(ranks_of(folder), 1) if ranks_of(folder) else []:
        send(pid, signal.SIGUSR1)


def term_rank(job, folder, rng):
    for pid in rng.sample(ranks_of(folder), 1) if ranks_of(folder) else []:
        send(pid, signal.SIGTERM)


def kill_rank(job, folder, rng):
    for pid in rng.sample(ranks_of(folder), 1) if ranks_of(folder) else []:
        send(pid, signal.SIGKILL)


def kill_mpirun(job, folder, rng):
    send(job.pid, signal.SIGKILL)


def kill_all(job, folder, rng):
    for pid in [*ranks_of(folder), job.pid]:
        send(pid, signal.SIGKILL)


def steps_done(folder):
    try:
        with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
            return sum('"split":"train"' in line for line in file)
    except OSError:
        return 0


def start_up(folder, rng, begin):
    wanted = rng.uniform(0, 0.5)
    return lambda: time.time() - begin > wanted


def in_a_step(folder, rng, begin):
    first = None
    wanted = rng.randint(1, 12)

    def come():
        nonlocal first
        done = steps_done(folder)
        if first is None:
            first = done
        return done - first >= wanted
    return come


def in_an_evaluation(folder, rng, begin):
    return lambda: state(folder).get("phase") == "evaluate" and state(folder).get("started", 0) > begin


def in_a_save(folder, rng, begin):
    earlier = set(glob.glob(f"{folder}/checkpoints/*"))
    wanted = rng.randint(1, 3)
    seen = set()

    def come():
        seen.update(set(glob.glob(f"{folder}/checkpoints/*.tmp")) - earlier)
        return len(seen) >= wanted
    return come


STOPS = (usr1_mpirun, term_mpirun, usr1_rank, term_rank, kill_rank, kill_mpirun, kill_all)
MOMENTS = (start_up, in_a_step, in_an_evaluation, in_a_save)


def disturb(folder, words, stop, moment, rng):
    """True: the stop came before the run was through."""
    command = mpirun(2) + [CONVOY, "train", "--output-dir", folder, "--threads", "1", "--no-tensorboard"] + [str(w) for w in words]
    begin = time.time()
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           env=dict(os.environ, OMP_NUM_THREADS="1", **SLOW_DISK))
    comes = moment(folder, rng, begin)
    while job.poll() is None and not comes():
        time.sleep(0.002)
    came = job.poll() is None
    if came:
        stop(job, folder, rng)
    said, _ = job.communicate(timeout=60)
    orderly = (0, 75) if stop in (usr1_mpirun, usr1_rank, term_rank) and moment is not start_up else None
    if not came and job.returncode != 0 or orderly and job.returncode not in orderly:
        check(False, f"{stop.__name__} {moment.__name__}: ended with {job.returncode}\n{said}")
    return came


def resumed_at(folder):
    """The step that each start went on from, as far as it came to tell."""
    return [r["step"] for r in records(folder, "run") if r["event"] == "resume"] if os.path.exists(f"{folder}/metrics.jsonl") else []


def differences(folder, straight):
    """What is not as in the run that was left alone; empty: nothing."""
    found = [] if same_bits(everything(last(folder)), everything(last(straight))) else ["the weights"]
    for split, fields in (("train", ("step", "loss", "top1")), ("val", ("epoch", "top1_count", "loss"))):
        one, other = ([tuple(r[f] for f in fields) for r in records(f, split)] for f in (folder, straight))
        if one != other:
            odd = [(a, b) for a, b in itertools.zip_longest(one, other) if a != b]
            found.append(f"{len(odd)} records of {split}, first {odd[0]}")
    return "; ".join(found)


def main():
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rng = random.Random(int(os.environ.get("CONVOY_TEST_SEED", "1")))
    pairs = [(stop, moment) for stop in STOPS for moment in MOMENTS]
    rng.shuffle(pairs)
    counted = collections.Counter()
    begin = time.time()
    with work_folder() as work:
        modes = list(MODES.items())
        for mode, words in modes:
            train(2, f"{work}/straight-{mode}", *JOB, *words, "--save-every", 0)
        done, runs, tries = 0, 0, 0
        while done < wanted:
            mode, words = modes[runs % 2]
            runs += 1
            folder = f"{work}/run-{runs}"
            durable, stops_here, told = 0, 0, 0
            while done < wanted:
                stop, moment = pairs[tries % len(pairs)]
                tries += 1  # a moment that is missed, as a short evaluation is, doesn't hold up the others
                if not disturb(folder, JOB + words + SAVES, stop, moment, rng):
                    break  # through before the moment came
                done += 1
                stops_here += 1
                counted[stop.__name__, moment.__name__] += 1
                seen = state(folder)
                if seen.get("result") == "finished":
                    break
                starts = resumed_at(folder)
                if len(starts) > told and starts[-1] < durable:  # this start, unless it ended before it could tell
                    check(False, f"resumed at step {starts[-1]}, but step {durable} had been called durable")
                told = len(starts)
                durable = max(durable, seen.get("checkpoint", {}).get("step", 0))
            train(2, folder, *JOB, *words, *SAVES)
            straight = f"{work}/straight-{mode}"
            differs = differences(folder, straight)
            if differs and "CONVOY_KEEP" in os.environ:
                shutil.copytree(work, os.environ["CONVOY_KEEP"])
            check(not differs, f"run {runs}, sync {mode}: the same bits and log after {stops_here} stops {differs}")
            check(not glob.glob(f"{folder}/checkpoints/*.damaged"), f"run {runs}: no checkpoint was damaged")
        check(not ranks_of(work), "no process is left")
    kinds = ", ".join(f"{stop.__name__} {sum(n for (s, _), n in counted.items() if s == stop.__name__)}" for stop in STOPS)
    moments = ", ".join(f"{m.__name__} {sum(n for (_, t), n in counted.items() if t == m.__name__)}" for m in MOMENTS)
    print(f"{done} of {wanted} stops in {runs} runs, {time.time() - begin:.0f} s: {kinds}; {moments}")


if __name__ == "__main__":
    main()
