# SPDX-License-Identifier: Apache-2.0
"""What `convoy status --after` tells a job script to do after an end that the program could not report itself. Usage:
resubmission_test.py CASE."""
import json
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "end_to_end"))
from runner import CONVOY, check, train, work_folder  # noqa: E402

RUN = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 64, "--model", "lenet", "--batch-size", 8, "--lr", 0.01, "--skip-eval",
       "--resume", "auto"]


def words_of(folder, *words):
    return [CONVOY, "train", "--output-dir", folder, "--threads", "1", "--no-tensorboard"] + [str(w) for w in words]


def state_of(folder):
    with open(f"{folder}/state.json", encoding="utf-8") as file:
        return json.load(file)


def write_state(folder, state):
    with open(f"{folder}/state.tmp", "w", encoding="utf-8") as file:
        json.dump(state, file)
    os.replace(f"{folder}/state.tmp", f"{folder}/state.json")


def killed_start(folder):
    """A start that is killed with -9 before its first step."""
    before = state_of(folder)["attempt"]
    job = subprocess.Popen(words_of(folder, *RUN, "--epochs", 100000, "--save-every", 0, "--inject-fault", "stall@0@0"),
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    begin = time.time()
    while state_of(folder)["attempt"] == before and time.time() - begin < 30:
        time.sleep(0.02)
    job.send_signal(signal.SIGKILL)
    job.wait()


def status(folder, *words, job=""):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "PBS"))}
    if job:
        environment["SLURM_JOB_ID"] = job
    done = subprocess.run([CONVOY, "status", folder] + [str(w) for w in words], capture_output=True, text=True, check=False, env=environment)
    return done.returncode, done.stdout


def expect(name, got, code, text=""):
    check(got[0] == code and text in got[1], f"{name}: {got[0]}, {got[1].strip()}")


def chain(work):
    """Healthy stops before count for nothing: only attempts since the newest checkpoint do."""
    for epochs in (1, 2, 3):
        train(1, f"{work}/run", *RUN, "--epochs", epochs)
    check(state_of(f"{work}/run")["attempt"] == 3, "three attempts that ended well")
    for killed in (1, 2, 3):
        killed_start(f"{work}/run")
        got = status(f"{work}/run", "--after", 137, "--attempts-before", 2 + killed)
        if killed < 3:
            expect(f"killed before its first save, {killed} times", got, 75, "it continues")
        else:
            expect("killed before its first save, 3 times", got, 137, "3 attempts in a row")


def numbers(work):
    """Numbers of attempts have gaps; the newest one's job says whose it is."""
    folder = f"{work}/run"
    train(1, folder, *RUN, "--epochs", 1, "--max-steps", 4)
    with open(f"{folder}/attempts/0001.json", encoding="utf-8") as file:
        record = json.load(file)
    record.update(attempt=9, scheduler="slurm", job="77", restarts=0)
    with open(f"{folder}/attempts/0009.json", "w", encoding="utf-8") as file:
        json.dump(record, file)
    state = state_of(folder)
    state.update(attempt=9, result="stopped", exit=75, stop="SIGUSR1", step=4, start_step=0)
    write_state(folder, state)
    expect("attempt 9 after 1, of this job", status(folder, "--after", 75, "--attempts-before", 1, job="77"), 75, "it continues")
    expect("attempt 9 after 1, of another job", status(folder, "--after", 75, "--attempts-before", 1, job="78"), 6, "attempt 9")
    expect("no new attempt", status(folder, "--after", 0, "--attempts-before", 9, job="78"), 0)


def clocks(work):
    """A run on a host whose clock is behind is alive as long as its file changes."""
    folder = f"{work}/run"
    train(1, folder, *RUN, "--epochs", 1, "--max-steps", 4)
    state = state_of(folder)
    state.update(host="elsewhere", result="running")
    os.remove(f"{folder}/attempts/0001.end.json")
    ends = threading.Event()

    def write():
        state["updated"] = time.time() - 100
        write_state(folder, state)

    def live():
        while not ends.wait(0.5):
            write()

    write()
    alive = threading.Thread(target=live)
    alive.start()
    got = status(folder)
    ends.set()
    alive.join()
    expect("a clock that is 100 s behind", got, 0, "running")
    expect("nobody writes", status(folder), 75, "ended without a record of its end")


if __name__ == "__main__":
    cases = {f.__name__: f for f in (chain, numbers, clocks)}
    with work_folder() as work_path:
        for case in sys.argv[1:] or cases:
            os.makedirs(f"{work_path}/{case}")
            cases[case](f"{work_path}/{case}")
