# SPDX-License-Identifier: Apache-2.0
"""Stops on request and deaths: SIGUSR1 and SIGTERM to one rank, SIGUSR1 to mpirun, kill -9 of one rank."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "end_to_end"))
from pace import crawl  # noqa: E402
from runner import CONVOY, check, everything, last, mpirun, records, same_bits, train, work_folder  # noqa: E402

JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 320, "--model", "resnet8", "--batch-size", 8, "--epochs", 6,
       "--lr", 0.05, "--print-freq", 1, "--seed", 7, "--skip-eval", "--save-every", 0]


def start(folder, *words):
    command = mpirun(2) + [CONVOY, "train", "--output-dir", folder, "--threads", "1", "--no-tensorboard"]
    job = subprocess.Popen(command + [str(w) for w in [*JOB, *crawl(5), *words]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           env=dict(os.environ, OMP_NUM_THREADS="1"))
    log = os.path.join(folder, "metrics.jsonl")
    while job.poll() is None and not (os.path.exists(log) and len(open(log, encoding="utf-8").readlines()) > 5):
        time.sleep(0.005)
    return job


def ranks_of(folder):
    pids = subprocess.run(["pgrep", "-f", f"^{CONVOY} .*{folder} "], capture_output=True, text=True, check=False).stdout.split()
    return sorted(int(p) for p in pids)


def stopped(name, folder, target, number):
    job = start(folder)
    os.kill(ranks_of(folder)[-1] if target == "rank" else job.pid, number)
    begin = time.time()
    _, err = job.communicate(timeout=30)
    check(job.returncode == 75, f"{name}: exit code {job.returncode}, expected 75" + ("" if job.returncode == 75 else "\n" + err))
    check(time.time() - begin < 10, f"{name}: ended after {time.time() - begin:.1f} s")
    done = max(r["step"] for r in records(folder, "train"))
    check(0 < done < 120, f"{name}: stopped after {done} of 120 steps")
    train(2, folder, *JOB, "--resume", "auto")


def main():
    with work_folder() as work:
        train(2, f"{work}/straight", *JOB)
        for name, target, number in (("SIGUSR1 to a rank", "rank", signal.SIGUSR1), ("SIGTERM to a rank", "rank", signal.SIGTERM),
                                     ("SIGUSR1 to mpirun", "mpirun", signal.SIGUSR1)):
            folder = f"{work}/stop-{target}-{int(number)}"
            stopped(name, folder, target, number)
            check(same_bits(everything(last(folder)), everything(last(f"{work}/straight"))), f"{name}: went on to the same bits")
        folder = f"{work}/killed"
        job = start(folder)
        os.kill(ranks_of(folder)[-1], signal.SIGKILL)
        job.communicate(timeout=20)
        check(job.returncode != 0, f"kill -9 of a rank: the job ended with {job.returncode}")
        time.sleep(0.5)
        check(not ranks_of(folder), "kill -9 of a rank: no process is left")


if __name__ == "__main__":
    main()
