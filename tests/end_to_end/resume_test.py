# SPDX-License-Identifier: Apache-2.0
"""Resume is a continuation: killed with -9 at a random step and started again, a run ends with the same bits and the same
log as one that was left alone. Usage: resume_test.py [KILLS] (default 3; bench/resume.sh runs 20)."""
import os
import random
import signal
import subprocess
import sys
import time

from runner import CONVOY, check, everything, last, mpirun, records, same_bits, train, work_folder

JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 330, "--model", "resnet20", "--batch-size", 16, "--epochs", 4,
       "--lr", 0.05, "--flip", "random", "--pad", 2, "--print-freq", 1, "--seed", 5, "--keep-checkpoints", 2]
MODES = {
    "gradients": ["--sync", "gradients"],
    "weights": ["--sync", "weights", "--local-steps", 3],  # saves fall into the middle of a period
    "outer": ["--sync", "weights", "--local-steps", 3, "--outer-optimizer", "nesterov", "--outer-lr", 0.7],
}


def kill_at_random(folder, words, rng):
    """Starts the job and kills all its ranks once it has made a random number of steps."""
    command = mpirun(2) + [CONVOY, "train", "--output-dir", folder, "--threads", "1", "--no-tensorboard", "--resume", "auto"]
    job = subprocess.Popen(command + [str(w) for w in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           start_new_session=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    log, wanted = os.path.join(folder, "metrics.jsonl"), rng.randint(1, 12)
    start = len(records(folder, "train")) if os.path.exists(log) else 0
    while job.poll() is None:
        if os.path.exists(log):
            try:
                done = len(records(folder, "train"))
            except ValueError:  # a line half written
                done = 0
            if done - start >= wanted:
                break
        time.sleep(0.002)
    finished = job.poll() == 0
    subprocess.run(["pkill", "-9", "-f", folder], check=False)
    if job.poll() is None:
        os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    return finished


def main():
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    rng = random.Random(int(os.environ.get("CONVOY_TEST_SEED", "1")))
    with work_folder() as work:
        for mode, words in MODES.items():
            job = JOB + words + ["--save-every-steps", 1]
            straight = f"{work}/straight-{mode}"
            train(2, straight, *JOB, *words, "--save-every", 0)
            count, runs = 0, 0
            while count < kills:  # a run takes several kills before it is through
                runs += 1
                killed = f"{work}/killed-{mode}-{runs}"
                while count < kills and not kill_at_random(killed, job, rng):
                    count += 1
                train(2, killed, *job, "--resume", "auto")
                check(same_bits(everything(last(straight)), everything(last(killed))),
                      f"sync {mode}: the same bits as a straight run after {count} kills in {runs} runs")
                losses = [[(r["step"], r["loss"], r["top1"]) for r in records(f, "train")] for f in (straight, killed)]
                epochs = [[(r["epoch"], r["images"], r["loss"], r["top1"], r["lr"]) for r in records(f, "epoch")] for f in (straight, killed)]
                check(epochs[0] == epochs[1] and len(epochs[0]) == 4, f"sync {mode}: the same records of {len(epochs[0])} whole epochs")
                check(losses[0] == losses[1], f"sync {mode}: the same log of losses ({len(losses[0])} steps)")


if __name__ == "__main__":
    main()
