# SPDX-License-Identifier: Apache-2.0
"""Stops of a job under mpirun, at moments and in ways that a random number chooses: at start-up, in a step, in an evaluation, while a
checkpoint is written; by USR1 and TERM to a rank or to mpirun, by kill -9 of a rank, of mpirun, of all. Whatever comes, the same
command goes on, and the run ends with the bits of one that was left alone. Used by random_stops_test.py and bench/stops.sh."""
import collections
import glob
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "end_to_end"))
from pace import crawl  # noqa: E402
from runner import CONVOY, everything, last, mpirun, records, same_bits, train  # noqa: E402

EPOCHS = 5
JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 4000, "--limit-train-batches", 12, "--model", "lenet", "--batch-size", 16, "--epochs", EPOCHS, "--lr", 0.02,
       "--flip", "random", "--pad", 2, "--seed", 5, "--print-freq", 1, "--eval-batch-size", 8, "--save-every-steps", 2, "--keep-checkpoints", 2,
       "--wait-for-other", 30]
WAYS = ("USR1 to a rank", "USR1 to mpirun", "TERM to a rank", "TERM to mpirun", "kill -9 of a rank", "kill -9 of mpirun", "kill -9 of all")
MOMENTS = ("at start-up", "in a step", "in an evaluation", "while a checkpoint is written")
LIMIT = 40  # seconds from a stop to the end of the last process, on a busy machine
# Seconds from the end of the last rank to that of mpirun. If a rank dies within MPI_Init, mpirun now and then (about 1 in 300) waits for
# ever in its own PMIx_server_finalize for a lock that PMIx 4.2.2 has freed.
LAUNCHER_LIMIT = 10


def processes_of(folder):
    """Ranks of the job of this run directory: process numbers by a look at all command lines."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if words[0] == CONVOY.encode() and folder.encode() in words:
                found.append(int(entry))
    return sorted(found)


def count(folder, split):
    try:
        return len(records(folder, split))
    except (OSError, ValueError):  # not there yet, or a line half written
        return 0


class Stop:
    """One start of the job and its stop."""

    def __init__(self, folder, way, moment, rng):
        self.folder, self.way, self.moment, self.rng = folder, way, moment, rng
        self.steps, self.epochs = count(folder, "train"), count(folder, "epoch")
        self.wanted = rng.randint(1, 9)
        # A run that is through before its stop came proves nothing: from some step on it crawls, each start a bit further on.
        words = [*JOB, *crawl(self.steps + self.wanted, 0.2), "--resume", "auto"]
        command = [*mpirun(2), CONVOY, "train", "--output-dir", folder, "--threads", "1", "--no-tensorboard", *map(str, words)]
        self.job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
                                    env=dict(os.environ, OMP_NUM_THREADS="1"))

    def has_come(self):
        if self.moment == "at start-up":
            return bool(processes_of(self.folder))
        if self.moment == "in an evaluation":
            return count(self.folder, "epoch") > self.epochs
        if self.moment == "while a checkpoint is written":
            return count(self.folder, "train") > self.steps and bool(glob.glob(f"{self.folder}/checkpoints/*.tmp*"))
        return count(self.folder, "train") >= self.steps + self.wanted

    def wait(self):
        """True where the moment came; not where the run was through before."""
        end = time.monotonic() + 60
        while self.job.poll() is None:
            if time.monotonic() > end:
                raise AssertionError(f"{self.moment}: did not come within 60 s")
            if self.has_come():
                pause = {"at start-up": 0.5, "in an evaluation": 0.02}.get(self.moment, 0)
                time.sleep(self.rng.uniform(0, pause))
                return self.job.poll() is None
            time.sleep(0.001)
        return False

    def strike(self):
        number = {"USR1": signal.SIGUSR1, "TERM": signal.SIGTERM, "kill": signal.SIGKILL}[self.way.split()[0]]
        whom = self.way.rsplit(" ", 1)[1]
        ranks = processes_of(self.folder)
        targets = {"rank": [self.rng.choice(ranks)] if ranks else [], "mpirun": [self.job.pid], "all": [self.job.pid, *ranks]}[whom]
        for target in targets:
            try:
                os.kill(target, number)
            except ProcessLookupError:
                pass

    def end(self):
        """Its exit code, once nothing of it is left."""
        limit = time.monotonic() + LIMIT
        alive = time.monotonic()
        while True:
            try:
                _, said = self.job.communicate(timeout=0.5)
                break
            except subprocess.TimeoutExpired as late:
                now = time.monotonic()
                if processes_of(self.folder):
                    alive = now
                if now > alive + LAUNCHER_LIMIT and (self.way, self.moment) == ("kill -9 of a rank", "at start-up"):
                    self.job.kill()
                elif now > limit:
                    raise AssertionError(f"{self.way} {self.moment}: not ended after {LIMIT} s") from late
        while processes_of(self.folder):
            if time.monotonic() > limit:
                raise AssertionError(f"{self.way} {self.moment}: {processes_of(self.folder)} are left\n{said[-2000:]}")
            time.sleep(0.02)
        return self.job.returncode

    def clean(self):
        for process in [self.job.pid, *processes_of(self.folder)]:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass


Outcome = collections.namedtuple("Outcome", "stops starts problem")


def disturb(reference, folder, stops, seed):
    """Runs the job to its end with so many stops, in as many runs as that takes; each run ends with the bits of `reference`. Returns
    an Outcome: (way, moment, exit code) of each stop, and None or what went wrong."""
    rng, done, starts, run = random.Random(seed), [], 0, 0
    while len(done) < stops:
        run += 1
        where = f"{folder}-{run}"
        while len(done) < stops and count(where, "val") < EPOCHS:
            way, moment = rng.choice(WAYS), rng.choice(MOMENTS)
            stop, starts = Stop(where, way, moment, rng), starts + 1
            try:
                if stop.wait():
                    stop.strike()
                    done.append((way, moment, stop.end()))
                elif stop.end() != 0:
                    return Outcome(done, starts, f"ended with {stop.job.returncode} before it was stopped, after {done[-3:]}")
                else:
                    break
            except AssertionError as problem:
                return Outcome(done, starts, str(problem))
            finally:
                stop.clean()
        train(2, where, *JOB, "--resume", "auto")
        if not same_bits(everything(last(reference)), everything(last(where))):
            return Outcome(done, starts, f"other bits in {where} after {done}")
        steps = [record["step"] for record in records(where, "train")]
        if steps != [record["step"] for record in records(reference, "train")]:
            return Outcome(done, starts, f"steps {steps} in the log after {done}")
    return Outcome(done, starts, None)
