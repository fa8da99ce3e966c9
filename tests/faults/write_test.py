# SPDX-License-Identifier: Apache-2.0
"""Every file that a job writes can't be written, in every way that a disk can fail: training goes on where it can and says so once, a
checkpoint that was good stays good, preparation leaves nothing half-written. Usage: write_test.py CASE."""
import glob
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "end_to_end"))
from runner import CONVOY, PREPROCESS, check, everything, last, mpirun, records, same_bits, train, work_folder  # noqa: E402

SHIM = os.path.join(os.environ["CONVOY_BUILD"], "tests", "libconvoy_failing_calls_preload.so")
REASONS = {"ENOSPC": "No space left on device", "EDQUOT": "Disk quota exceeded", "EROFS": "Read-only file system", "EIO": "Input/output error"}
JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 160, "--model", "lenet", "--batch-size", 16, "--epochs", 3, "--lr", 0.05,
       "--print-freq", 2, "--seed", 5]


def run(words, rules, ranks=1, program=CONVOY):
    """Exit code and stderr of a job whose calls fail by the rules (tests/support/failing_calls.cpp)."""
    env = dict(os.environ, OMP_NUM_THREADS="1", LD_PRELOAD=SHIM, CONVOY_FAILING_CALLS=",".join(rules))
    command = (mpirun(ranks) if ranks > 1 else []) + [program] + [str(w) for w in words]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60, check=False)
    return done.returncode, done.stderr


def job(folder, *words):
    return ["train", "--output-dir", folder, "--threads", 1, *JOB, *words]


def expect(condition, name, said):
    check(condition, name + ("" if condition else "\n" + said))


def records_and_state(work):
    """All that only tells about the run fails for good: the run goes on to the same weights and names each file once."""
    train(1, f"{work}/straight", *JOB)
    sites = ("metrics.jsonl", "tensorboard", "summary.csv", "config.cfg", "command.txt", "environment.json", "state.json", ".end.json", "log.txt")
    for error, reason in REASONS.items():
        folder = f"{work}/{error}"
        code, said = run(job(folder), [f"{call}:{site}:{error}:0" for site in sites for call in ("write", "rename")] + [f"mkdir:tensorboard:{error}:0"])
        expect(code == 0, f"{error}: the run goes on", said)
        expect(same_bits(everything(last(folder)), everything(last(f"{work}/straight"))), f"{error}: the same bits", said)
        for site in sites:
            lines = [line for line in said.splitlines() if site in line]
            expect(len(lines) == 1 and reason in lines[0], f"{error}: '{site}' and the reason are named once", said)


def passing_trouble(work):
    """A disk that is full for a while: records are missing, none is torn, and later ones are there."""
    folder = f"{work}/passing"
    code, said = run(job(folder), ["write:metrics.jsonl:ENOSPC:3:2", "write:tensorboard:EIO:2:3", "write:epoch-0001:EDQUOT", "rename:summary:EROFS"])
    expect(code == 0, "passing trouble: the run goes on", said)
    steps = [r["step"] for r in records(folder, "train")]
    expect(0 < len(steps) < 15 and steps[-1] == 30, f"passing trouble: steps {steps}", said)
    expect(said.count("metrics.jsonl") == 1, "passing trouble: said once", said)
    expect("'epoch-0001' was not saved, the one before stays" in said, "passing trouble: the checkpoint is named", said)
    names = sorted(os.path.basename(p) for p in glob.glob(f"{folder}/checkpoints/*.h5"))
    expect(names == ["best.h5", "epoch-0002.h5", "epoch-0003.h5", "last.h5"], f"passing trouble: {names}", said)
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    events = list(EventFileLoader(glob.glob(f"{folder}/tensorboard/*")[0]).Load())
    check(len(events) > 10, f"passing trouble: {len(events)} events are whole")


def checkpoints(work):
    """Checkpoints can't be written any more: the last good one stays and is gone on from."""
    good = f"{work}/good"
    train(1, good, *JOB, "--max-steps", 15)
    train(1, f"{work}/straight", *JOB)
    for error, reason in REASONS.items():
        for call in ("open", "write", "fsync", "rename"):
            folder = f"{work}/{error}-{call}"
            shutil.copytree(good, folder)
            code, said = run(job(folder, "--resume", "auto", "--save-every-steps", 5), [f"{call}:.h5:{error}:0"])
            name = f"{call} fails with {error}"
            expect(code == 3 and reason in said and "last.h5" not in [os.path.basename(p) for p in glob.glob(f"{folder}/checkpoints/*.tmp")]
                   and "error:" in said and "make room" in said, f"{name}: code {code}, with file, reason and remedy", said)
            expect(not glob.glob(f"{folder}/checkpoints/*.tmp"), f"{name}: nothing half-written", said)
        train(1, folder, *JOB, "--resume", "auto")
        expect(same_bits(everything(last(folder)), everything(last(f"{work}/straight"))), f"{error}: goes on to the same bits", said)


def start(work):
    """What a run can't do without: it ends at once with a message."""
    for error, reason in REASONS.items():
        code, said = run(job(f"{work}/start-{error}"), [f"open:attempts/:{error}:0"])
        expect(code == 3 and reason in said and "attempts" in said and "; " in said, f"attempt, {error}: refused with {code}", said)


def preparation(work):
    """convoy-preprocess on a failing disk: the partition that failed isn't there, the others are whole, and it can be made up for."""
    words = ["synthetic", "--samples", 60, "--val-samples", 20, "--image-size", 8, "--partitions", 3, "--out"]
    for error, reason in REASONS.items():
        for call in ("open", "write", "fsync", "rename"):
            out, name = f"{work}/data-{error}-{call}", f"{call} fails with {error}"
            for after in range(0, 40, 3):  # from one call after the other on
                code, said = run([*words, out], [f"{call}:train-00001:{error}:0:{after}"], program=PREPROCESS)
                if code == 0:
                    break
                expect(code == 3 and reason in said and "train-00001" in said and "; " in said, f"{name} at call {after}: refused with {code}", said)
                expect(not glob.glob(f"{out}/train-00001*"), f"{name} at call {after}: nothing half-written", said)
            expect(code == 0 and after > 0, f"{name}: made in the end", said)
            code, said = run(["verify", out], [], program=PREPROCESS)
            expect(code == 0, f"{name}: whole", said)


if __name__ == "__main__":
    cases = {f.__name__: f for f in (records_and_state, passing_trouble, checkpoints, start, preparation)}
    with work_folder() as work_path:
        for case in sys.argv[1:] or cases:
            cases[case](work_path)
