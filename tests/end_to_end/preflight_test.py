# SPDX-License-Identifier: Apache-2.0
"""convoy preflight, the table that heads logs, and launchers that MPI does not understand."""
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess

from runner import CONVOY, PREPROCESS, check, mpirun, run, work_folder

CORES = len(os.sched_getaffinity(0))


def call(name, ranks, *words, expect=0, before=(), env=None):
    """Without mpirun where ranks is 0. Its own threads: OMP_NUM_THREADS is not set."""
    settings = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"} | (env or {})
    command = [*before, *(mpirun(ranks) if ranks else []), CONVOY, *(str(w) for w in words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False, env=settings)
    said = "" if done.returncode == expect else f", expected {expect}\n{done.stdout}{done.stderr}"
    check(done.returncode == expect, f"{name}: exit code {done.returncode}{said}")
    return done.stdout, done.stderr


def prepared(work):
    run(1, "synthetic", "--out", f"{work}/data", "--samples", 90, "--val-samples", 20, "--image-size", 16, "--partitions", 3,
        program=PREPROCESS)
    return f"{work}/data"


def places(work, data):
    folder = f"{work}/new/run"
    out, _ = call("one rank", 0, "preflight", "--data", data, "--output-dir", folder)
    check(re.search(rf"^0 +\S+ +0 +cpu .* {CORES} +nobody", out, re.M), "one rank: its row")
    check("90 images of 16x16x3 in 3 partitions of split train" in out and "no val split" not in out, "the data set is described")
    check(out.endswith("preflight: ok\n") and not os.path.exists(f"{work}/new"), "it leaves nothing behind")
    shutil.copytree(data, f"{work}/half", ignore=shutil.ignore_patterns("val*"))
    out, _ = call("no val split", 0, "preflight", "--data", f"{work}/half", "--output-dir", folder)
    check("; no val split (--val-data DIR), so nothing will be evaluated" in out, "a set without images to evaluate on")
    out, _ = call("two ranks", 2, "preflight", "--data", data, "--output-dir", folder, "--json")
    report = json.loads(out)
    ranks = report["ranks"]
    check(report["ok"] and report["exit"] == 0 and [r["local_rank"] for r in ranks] == [0, 1], "JSON of two ranks")
    check(report["run_directory"]["write_mb_per_sec"] > 0 and report["run_directory"]["free_gb"] > 0, "speed and room")
    check(report["network"]["large_sum_mb_per_sec"] > 0 and abs(report["clocks"]["most_off_seconds"]) < 0.5, "network, clocks")
    if CORES >= 2:
        check(ranks[0]["bound_by"] == "convoy" and ranks[0]["cpus"] != ranks[1]["cpus"], "ranks have cores of their own")
        out, _ = call("--bind none", 2, "preflight", "--bind", "none", "--json", "--output-dir", folder)
        check(all(r["bound_by"] == "nobody (shared)" and r["threads"] == CORES // 2 for r in json.loads(out)["ranks"]),
              "--bind none shares the cores")
        out, _ = call("bound by the launcher", 0, "preflight", "--json", "--output-dir", folder,
                      before=["mpirun", "-np", "2", "--map-by", "core", "--bind-to", "core"])
        check(all(r["bound_by"] == "launcher" for r in json.loads(out)["ranks"]), "a launcher's binding stays")


def double_booked(work, data):
    words = ["preflight", "--data", data, "--output-dir", f"{work}/run"]
    os.makedirs(work)
    with open(f"{work}/nodes", "w", encoding="utf-8") as nodes:  # as PBS gives them: a line for each rank
        nodes.write(f"{os.uname().nodename}\nelsewhere\n")
    out, _ = call("two ranks on one core", 2, *words, expect=4, before=["taskset", "-c", "0"], env={"PBS_NODEFILE": f"{work}/nodes"})
    check("runs 2 of its 1 rank, elsewhere runs 0 of its 1 rank; start them with 'mpirun -np 2 -host " in out, "which hosts, and the remedy")
    check("ranks 0-1 run 2 threads on one core (cores 0); " in out, "which ranks, which cores")
    out, _ = call("too many threads", 1, *words, expect=4, before=["taskset", "-c", "0"], env={"OMP_NUM_THREADS": "8"})
    check("rank 0 runs 8 threads on one core (cores 0); " in out, "which rank")


def unreachable(work, data):
    os.makedirs(work)
    data = shutil.copytree(data, f"{work}/data")
    out, _ = call("no data set", 2, "preflight", "--data", f"{work}/none", "--output-dir", f"{work}/run", "--threads", 1, expect=3)
    check(re.search(rf"^FAILED: .*'{work}/none'.* \[rank 0\]$", out, re.M), "rank 0 reads, and says it")
    part = sorted(glob.glob(f"{data}/train-*.h5"))[1]
    os.truncate(part, os.path.getsize(part) - 100)
    out, _ = call("a truncated partition", 1, "preflight", "--data", data, "--output-dir", f"{work}/run", expect=3)
    check(os.path.basename(part) in out, "the partition is named")
    open(f"{work}/file", "w", encoding="utf-8").close()
    out, _ = call("a run directory below a file", 2, "preflight", "--output-dir", f"{work}/file/run", "--threads", 1, expect=3)
    check("FAILED: cannot make " in out and "--output-dir [rank 0]" in out, "the remedy is named")
    check("data: not given" in out, "what isn't given isn't checked")


def other_set(work, data):
    """Three ranks, each on its own host. Rank 2's host has a different data set at the same path."""
    os.makedirs(work)
    run(1, "synthetic", "--out", f"{work}/other", "--samples", 90, "--val-samples", 20, "--image-size", 16, "--partitions", 3, "--seed", 9,
        program=PREPROCESS)
    os.makedirs(f"{work}/some")
    for part in glob.glob(f"{data}/*"):
        if not part.endswith("train-00000-of-00003.h5"):
            shutil.copy(part, f"{work}/some")
    program = f"{work}/on-its-own-host"
    words = ["preflight", "--data", data, "--output-dir", f"{work}/run", "--threads", 1]
    for name, expected in (("", ""), ("other", "train-00002-of-00003.h5' on this host differs"), ("some", "train-00000-of-00003.h5' exists on the host of rank 0 and is missing")):
        mount = f"{{ [ $OMPI_COMM_WORLD_RANK != 2 ] || mount --bind {work}/{name} {data}; }} && " if name else ""
        with open(program, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexec unshare --uts --mount sh -c '{mount}hostname n$OMPI_COMM_WORLD_RANK && exec \"$@\"' sh '{CONVOY}' \"$@\"\n")
        os.chmod(program, 0o755)
        out, _ = run(3, *words, program=program, expect=3 if name else 0)
        if name:
            check(re.search(rf"^FAILED: .*{expected}.* \[rank 2\]$", out, re.M), f"{name}: rank 2 is named")
        else:
            check("compared on 3 hosts" in out, "three hosts see the set")


def launchers(work, _):
    job = ["train", "--synthetic", "--output-dir", f"{work}/never"]
    for variables in ({"PMI_SIZE": "4", "PMI_RANK": "0"}, {"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0"}):
        _, err = call(f"lonely worlds by {min(variables)}", 0, *job, expect=2, env=variables)
        check(err.count("error: ") == 1 and "started 4 processes" in err and "world of 1 rank" in err, "it is explained")
    for variables in ({"PMI_SIZE": "4", "PMI_RANK": "3"}, {"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3"}):
        _, err = call("the others", 0, *job, expect=2, env=variables)
        check(err == "", "they are silent")
    check(not os.path.exists(f"{work}/never"), "nothing was begun")


def table_heads_logs(work, _):
    small = ["train", "--synthetic", "--synthetic-size", 16, "--synthetic-samples", 64, "--model", "lenet", "--batch-size", 8,
             "--max-steps", 1, "--skip-eval", "--no-checkpoints", "--no-tensorboard", "--output-dir"]
    out, _ = call("a job", 2, *small, f"{work}/job")
    check(re.match(r"rank +host +local +device .*\n0 .*\n1 ", out), "its output begins with the table")
    log = open(f"{work}/job/log.txt", encoding="utf-8").read()
    check("bound by" in log.splitlines()[0], "and so does its log")


def stress(work, _):
    words = ["preflight", "--stress", 1, "--threads", 1, "--output-dir", f"{work}/run"]
    os.makedirs(work)
    out, _ = call("stress on one rank", 1, *words)
    check(re.search(r"^arithmetic: \d+ steps? of resnet20", out, re.M) and re.search(r"^memory: \d+ MB per rank written and read", out, re.M)
          and re.search(r"^disk: .* MB/s by the slowest host", out, re.M), "what was tested")
    out, _ = call("stress on four ranks", 4, *words, "--json", expect=4 if CORES < 4 else 0)
    report = json.loads(out)
    check(report["arithmetic"]["steps"] >= 4 and report["links"]["slowest_mb_per_sec"] > 0 and report["disk"]["slowest_mb_per_sec"] > 0,
          "four ranks compute and exchange")
    check(not any("bits" in problem["text"] for problem in report["problems"]), "and nothing is wrong")
    check(os.listdir(work) == [], "no file is left")
    for fault, text in (("flip-convolution@1@0", "other bits than most ranks on"), ("flip-convolution@1@1", "computes the same step with different bits"),
                        ("flip-memory@1@0", "gives other bits than were written to it")):
        out, _ = call(fault, 3, *words, "--inject-fault", fault, expect=7)
        check(re.search(rf"^FAILED: .*{text}.* \[rank 1\]$", out, re.M) is not None, f"{fault}: rank 1 is named")


def may_mount(work):
    os.makedirs(f"{work}/mounted")
    command = ["unshare", "--uts", "--mount", "sh", "-c", f"hostname n0 && mount --bind {work} {work}/mounted"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def main():
    with work_folder() as work:
        data = prepared(work)
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            parts = [places, double_booked, unreachable, launchers, table_heads_logs, stress]
            if may_mount(work):
                parts.append(other_set)
            else:
                print("skipped other_set: no right to give hosts names and to mount a folder")
            parts = [pool.submit(part, f"{work}/{part.__name__}", data) for part in parts]
            for part in parts:
                part.result()


if __name__ == "__main__":
    main()
