# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in a job: every case must end by itself in time, with the right code and a message that names rank, cause
and remedy. Usage: job_test.py CASE."""
import glob
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "end_to_end"))
from runner import CONVOY, PREPROCESS, check, mpirun, run, work_folder  # noqa: E402

TINY = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 300, "--model", "lenet", "--batch-size", 8, "--epochs", 9,
        "--lr", 0.01, "--skip-eval"]


def leftovers(folder):
    """Processes of ours that still run."""
    return subprocess.run(["pgrep", "-f", folder], capture_output=True, text=True, check=False).stdout.split()


def expect(name, ranks, folder, words, code, *texts, seconds=30):
    begin = time.time()
    command = mpirun(ranks) + [CONVOY, "train", "--output-dir", folder, "--threads", "1"] + [str(w) for w in words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds + 20,
                          env=dict(os.environ, OMP_NUM_THREADS="1"))
    took = time.time() - begin
    said = "\n" + done.stdout[-2000:] + done.stderr[-2000:]
    check(done.returncode == code, f"{name}: code {done.returncode}, expected {code}" + (said if done.returncode != code else ""))
    check(took < seconds, f"{name}: ended after {took:.1f} s")
    for text in texts:
        found = text.search(done.stderr) if isinstance(text, re.Pattern) else text in done.stderr
        check(found, f"{name}: stderr has '{text}'" + ("" if found else said))
    check(not leftovers(folder), f"{name}: no process is left")
    return done.stderr


def throws(work):
    """A rank that throws at step 20."""
    expect("throw on rank 2", 3, f"{work}/throw", TINY + ["--inject-fault", "throw@2@20"], 1, "[rank 2/3", "step 21", "injected")


def not_finite(work):
    """NaN on one rank is caught before it spreads, and its rank is named."""
    for name, words in (("gradients", ["--sync", "gradients"]), ("weights", ["--sync", "weights"]),
                        ("sync-bn", ["--sync", "gradients", "--sync-bn", "--model", "resnet8"])):
        expect(f"NaN on rank 1, {name}", 3, f"{work}/nan-{name}", TINY + words + ["--inject-fault", "nan@1@20"], 1,
               "[rank 1/3", "not finite in replica 1", "step 21", seconds=30 if name == "sync-bn" else 10)


def stalls(work):
    """A rank that stops answering: the others leave with 5, naming the operation."""
    expect("stall on rank 1", 2, f"{work}/stall", TINY + ["--inject-fault", "stall@1@5", "--stall-warning-seconds", 1,
                                                          "--stall-abort-seconds", 3], 5, "[rank 0/2", re.compile(r"waited 3\.\d s in "),
           "did not arrive: rank 1 on ", "step 6")


def usage(work):
    err = expect("unknown option", 2, f"{work}/u", TINY + ["--bacth-size", 3], 2, "--batch-size")
    check(err.count("error:") == 1, "unknown option: only one rank speaks")
    expect("bad value", 2, f"{work}/u", TINY + ["--momentum", 1.5], 2, "momentum", "1.5")
    expect("more ranks than images", 3, f"{work}/u", TINY + ["--synthetic-samples", 2], 2, "3 replicas share 2 training images")
    expect("unknown model", 2, f"{work}/u", TINY + ["--model", "resnet51"], 2, "resnet5")
    expect("sync-bn with weights", 2, f"{work}/u", TINY + ["--sync", "weights", "--sync-bn"], 2, "--sync gradients")
    config = f"{work}/bad.cfg"
    with open(config, "w", encoding="utf-8") as file:
        file.write("epochs = 2\n[phase.1]\nepochs = 0:1\nlrr = 0.1\n")
    expect("unknown key in a phase", 1, f"{work}/u", ["--config", config], 2, "lrr", "lr")
    expect("missing configuration", 1, f"{work}/u", ["--config", f"{work}/none.cfg"], 2, "none.cfg")


def output(work):
    """A run directory that can't be made (below a file)."""
    open(f"{work}/file", "w", encoding="utf-8").close()
    expect("unwritable output", 2, f"{work}/file/run", TINY, 3, "--output-dir")


def reader_gone(work):
    """Nobody reads what it prints any more: it goes on."""
    folder = f"{work}/unread"
    words = [CONVOY, "train", "--output-dir", folder, "--threads", "1", "--print-freq", "1"] + [str(w) for w in TINY]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        job.stdout.readline()
        job.stdout.close()
        job.stderr.close()
        job.wait(60)
    check(job.returncode == 0, f"a reader that is gone: code {job.returncode}")
    check('"result": "finished"' in open(f"{folder}/state.json", encoding="utf-8").read(), "a reader that is gone: it says how it ended")


def full_disk(work):
    """A disk that fills up."""
    small = f"{work}/small"
    os.makedirs(small)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", small], capture_output=True, check=False).returncode != 0:
        print("no right to mount a small disk")
        sys.exit(77)
    try:
        expect("full disk", 2, f"{small}/run", TINY + ["--model", "resnet20", "--synthetic-size", 16, "--epochs", 1], 3, "[rank 0/2",
               "small/run")
        check(not glob.glob(f"{small}/run/checkpoints/*.h5"), "full disk: nothing half-written under a final name")
    finally:
        subprocess.run(["umount", "-l", small], check=False)


def partitions(work):
    """Damaged data are found at start-up, by every program that reads them, on the rank that reads them."""
    data = f"{work}/data"
    run(1, "synthetic", "--out", data, "--samples", 90, "--val-samples", 20, "--image-size", 16, "--partitions", 3, program=PREPROCESS)
    job = ["--data", data, "--model", "lenet", "--batch-size", 8, "--epochs", 1]
    part = sorted(glob.glob(f"{data}/train-00001*.h5"))[0]
    shutil.copy(part, f"{work}/good.h5")

    def damaged(name, change, *texts):
        shutil.copy(f"{work}/good.h5", part)
        change()
        expect(name, 2, f"{work}/p", job, 3, os.path.basename(part), *texts)

    def flip(at):
        with open(part, "r+b") as file:
            file.seek(at, os.SEEK_SET if at >= 0 else os.SEEK_END)
            byte = file.read(1)
            file.seek(at, os.SEEK_SET if at >= 0 else os.SEEK_END)
            file.write(bytes([byte[0] ^ 4]))

    damaged("missing partition", lambda: os.remove(part))
    damaged("empty partition", lambda: os.truncate(part, 0))
    damaged("truncated partition", lambda: os.truncate(part, os.path.getsize(part) - 100))
    damaged("flipped bit in the header", lambda: flip(600))
    damaged("flipped bit at the end", lambda: flip(-1))
    damaged("flipped bit in a sample", lambda: flip(os.path.getsize(part) // 2))
    shutil.copy(f"{work}/good.h5", part)
    expect("repaired", 2, f"{work}/p", job, 0, seconds=30)
    expect("no data set", 2, f"{work}/p", job + ["--data", f"{work}/nowhere"], 3, "nowhere")


if __name__ == "__main__":
    cases = {f.__name__: f for f in (throws, not_finite, stalls, usage, output, reader_gone, full_disk, partitions)}
    with work_folder() as folder:
        for case in sys.argv[1:] or cases:
            cases[case](folder)
