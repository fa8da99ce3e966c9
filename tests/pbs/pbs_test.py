# SPDX-License-Identifier: Apache-2.0
"""pbs/*.pbs under what PBS gives a job: ranks on all hosts through pbs_tmrsh, a wall-clock limit that the program keeps, and
jobs that submit themselves again with what they were asked for. Usage: pbs_test.py"""
import os
import re
import subprocess
import sys

import numpy as np

import commands
from complex import Complex, enter_or_skip

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../end_to_end"))
from pace import Pace  # noqa: E402
from runner import CONVOY, PREPROCESS, SOURCE, check, everything, last, records, same_bits  # noqa: E402

OPTIONS = "--threads 1 --no-tensorboard --print-freq 1 --epochs 4"
PLACES = ["-l", "select=2:ncpus=2:mpiprocs=2"]


def submit(pbs, run, *words, script="pbs/train.pbs", wall="00:05:00", extra="", program=CONVOY, **variables):
    values = {"DATA": pbs.work / "data", "CONFIG": "configs/tiny.cfg", "OUTPUT": run, "EXTRA": f"{OPTIONS} {extra}".strip(),
              "CONVOY": program, "CONVOY_PREPROCESS": PREPROCESS, "CONVOY_HOME": pbs.work / "two words", "CONVOY_DEVICE": "cpu",
              **variables}
    return pbs.qsub(*PLACES, "-l", f"walltime={wall}", "-v", ",".join(values), *words, f"{SOURCE}/{script}", cwd=pbs.work, **values)


def make_tree(pbs):
    """The source tree under a path with a blank."""
    (pbs.work / "two words").mkdir()
    for name in ("pbs", "scripts", "configs"):
        (pbs.work / "two words" / name).symlink_to(f"{SOURCE}/{name}")


def steps(run):
    try:
        return len(records(run, "train"))
    except (OSError, ValueError):  # not there yet, or a line half written
        return 0


def prepares(pbs):
    raw = pbs.work / "raw"
    raw.mkdir()
    rng = np.random.default_rng(1)
    for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"):
        records_ = rng.integers(0, 256, (40, 3073), dtype=np.uint8)
        records_[:, 0] = np.arange(40) % 10
        (raw / name).write_bytes(records_.tobytes())
    (raw / "batches.meta.txt").write_text("\n".join(f"class{i}" for i in range(10)) + "\n")
    job = submit(pbs, "", script="pbs/preprocess.pbs", KIND="cifar10", SOURCE=raw, DATA=pbs.work / "cifar10", EXTRA="--partitions 3")
    pbs.wait_idle(60)
    check(pbs.job(job)["exit"] == 0 or print(pbs.output(job)), "pbs/preprocess.pbs ends with 0")
    check(len(list((pbs.work / "cifar10").glob("train-*.h5"))) == 3 and "on 4 ranks" in pbs.output(job),
          "it makes the partitions on 4 ranks of 2 hosts")
    subprocess.run([PREPROCESS, "synthetic", "--out", pbs.work / "data", "--partitions", "3", "--samples", "800", "--val-samples",
                    "200"], check=True, stdout=subprocess.DEVNULL)


def crawls(pbs, run):
    """A program for a job that is to be disturbed before its end."""
    return Pace(pbs.work / f"{run.name}.convoy", CONVOY, 8, seconds=1)


def trains(pbs, run):
    job = submit(pbs, run, "-l", "select=1:ncpus=2:mpiprocs=1+1:ncpus=2:mpiprocs=3")
    pbs.wait_idle(90)
    check(pbs.job(job)["exit"] == 0, "pbs/train.pbs ends with 0" if pbs.job(job)["exit"] == 0 else pbs.output(job))
    check("4 ranks, 4 replicas" in pbs.output(job), "it trains on 4 ranks")
    table = re.findall(r"^(\d) +(n\d) ", pbs.output(job), re.MULTILINE)
    hosts = commands.node_lines(pbs.job(job), pbs.job(job)["hosts"])
    check([host for _, host in table] == hosts and "not where" not in pbs.output(job), f"each rank on the host that PBS means for it ({table})")
    reference = pbs.work / "reference"
    subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "4", CONVOY, "train", "--config",
                    f"{SOURCE}/configs/tiny.cfg", "--data", pbs.work / "data", "--output-dir", reference, "--backend", "mpi", *OPTIONS.split()],
                   check=True, stdout=subprocess.DEVNULL)
    check(same_bits(everything(last(reference)), everything(last(run))), "to the same bits as under mpirun")
    return reference


def jobs_of(pbs, run):
    return [job for job in pbs.jobs() if job["variables"]["OUTPUT"] == str(run)]


def goes_on(pbs, reference):
    """The wall time ends before the run does. Meanwhile other jobs run on the other hosts."""
    run = pbs.work / "limited"
    pace = crawls(pbs, run)
    submit(pbs, run, "-q", "express", "-A", "climate-7", "-P", "long names", wall="00:00:14", program=pace.program)  # it crawls for 20 s
    evaluates(pbs, reference)
    is_deleted(pbs)
    pbs.until(lambda: len(jobs_of(pbs, run)) > 1, 60, "a second job")
    pace.hurry()
    pbs.wait_idle(120)
    jobs = jobs_of(pbs, run)
    check(len(jobs) > 1 and all(job["exit"] == 75 for job in jobs[:-1]) and jobs[-1]["exit"] == 0,
          f"a job that is too short submits itself again until it is done ({len(jobs)} jobs, exits {[job['exit'] for job in jobs]})")
    check(all(job["after"] == earlier["id"] for earlier, job in zip(jobs, jobs[1:])), "each waits for the end of the one before")
    first, second = jobs[0], jobs[1]
    check(second["workdir"] == first["workdir"], "it is submitted from the same folder")
    check(second["resources"] == first["resources"] and second["queue"] == "express", "it asks for what the first asked for")
    check(second["account"] == "climate-7" and second["project"] == "long names", "under the same account and project")
    check({k: second["variables"].get(k) for k in first["variables"]} == first["variables"], "it gets the same variables")
    check(same_bits(everything(last(reference)), everything(last(run))), "and ends with the same bits")


def loses_a_host(pbs, reference):
    run = pbs.work / "lost"
    pace = crawls(pbs, run)
    job = submit(pbs, run, program=pace.program)
    pbs.until(lambda: steps(run) > 8, 60, "some steps")
    pbs.crash(pbs.job(job)["hosts"][1])
    pace.hurry()
    pbs.wait_idle(120)
    exits = [job["exit"] for job in jobs_of(pbs, run)]
    check(exits == [75, 0], f"a job that loses its second host submits itself again and finishes (exits {exits})")
    check(same_bits(everything(last(reference)), everything(last(run))), "with the same bits")


def is_deleted(pbs):
    run = pbs.work / "deleted"
    job = submit(pbs, run, program=crawls(pbs, run).program)
    pbs.until(lambda: steps(run) > 4, 60, "some steps")
    subprocess.run([pbs.folder / "bin/qdel", job], check=True)
    pbs.until(lambda: pbs.job(job)["state"] == "F", 60, "its end")
    check(len(jobs_of(pbs, run)) == 1, "a deleted job does not come back")


def evaluates(pbs, run):
    job = submit(pbs, pbs.work / "evaluation", script="pbs/evaluate.pbs", RUN=run, EXTRA="--threads=1")
    pbs.until(lambda: pbs.job(job)["state"] == "F", 60, "its end")
    check(pbs.job(job)["exit"] == 0 and (pbs.work / "evaluation/result.json").exists(), "pbs/evaluate.pbs evaluates")


if __name__ == "__main__":
    with Complex(enter_or_skip(), 4) as complex_:
        make_tree(complex_)
        prepares(complex_)
        bits = trains(complex_, complex_.work / "straight")
        goes_on(complex_, bits)
        loses_a_host(complex_, bits)
        check(complex_.processes("convoy", "orted", "mpirun") == [], "no process is left on any host")
