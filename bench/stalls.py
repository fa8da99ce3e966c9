#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Deaths and stalls, many of each kind: does every job end in time, with the right code, naming who and where, and leave
nothing? Prints lines for bench/results.md. Usage: bench/stalls.py [COUNT] [KIND ...], with the release build in place."""
import collections
import concurrent.futures
import datetime
import os
import pathlib
import random
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/release"
os.environ.setdefault("CONVOY", str(BUILD / "src/cli/convoy"))
os.environ.setdefault("CONVOY_PREPROCESS", str(BUILD / "preprocess/convoy-preprocess"))
os.environ.setdefault("CONVOY_STUCK_READS", str(BUILD / "tests/faults/libstuck_reads.so"))
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1")
sys.path += [str(ROOT / "tests/faults"), str(ROOT / "tests/slurm")]
from machine import MACHINE  # noqa: E402
import hosts as several  # noqa: E402
import dying_jobs as dying  # noqa: E402
from runner import work_folder  # noqa: E402

AT_ONCE = 2  # the jobs mostly wait


def one_host(work, count, wanted):
    """(kind, seconds, problem) of each job; the frozen, killed or throwing rank is drawn anew each time."""
    draw = random.Random(1)
    rank = lambda: draw.randrange(4)  # noqa: E731
    kinds = {"SIGSTOP of a rank": lambda folder, r: dying.frozen(folder, r),
             "kill -9 of a rank": lambda folder, r: dying.killed(folder, r),
             "exception in a step": lambda folder, r: dying.thrown(folder, r),
             "read that never returns, watchdog": lambda folder, _: dying.stuck(folder),
             "read that never returns, no watchdog": lambda folder, _: dying.stuck_unwatched(folder),
             "EIO on one rank": lambda folder, _: dying.unreadable(folder)}

    def run(kind, number, r):
        folder = f"{work}/{number}"
        os.makedirs(folder)
        ended, problem = kinds[kind](folder, r)
        return kind, ended.seconds, problem and f"{kind}, rank {r}: {problem}\n{ended.said[-1500:]}"

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        jobs = [pool.submit(run, kind, f"{k}-{i}", rank()) for k, kind in enumerate(kinds) for i in range(count)
                if not wanted or any(word in kind for word in wanted)]
        yield from (job.result() for job in concurrent.futures.as_completed(jobs))


def four_hosts(count, wanted):
    kinds = {"frozen host": dying.host_frozen, "crashed host": dying.host_crashed, "cut network": dying.network_cut}
    kinds = {name: case for name, case in kinds.items() if not wanted or any(word in name for word in wanted)}
    if not kinds:
        return
    draw = random.Random(2)
    with several.Hosts(several.enter_or_skip(), 4, ["sleep", "1000000"]) as hosts:
        for name, case in kinds.items():
            for _ in range(count):
                host = f"n{draw.randrange(4)}"
                try:
                    ended, problem = case(hosts, host)
                except subprocess.TimeoutExpired:
                    yield name, 60, f"{name}, {host}: the job did not end within a minute"
                    continue
                yield name, ended.seconds, problem and f"{name}, {host}: {problem}\n{ended.said[-1500:]}"


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    wanted = sys.argv[2:]
    seconds, problems = collections.defaultdict(list), collections.defaultdict(list)
    begin = time.time()

    def take(results):
        for kind, took, problem in results:
            seconds[kind].append(took)
            if problem:
                problems[kind].append(problem)
                print(problem, file=sys.stderr, flush=True)

    with work_folder() as work:
        take(one_host(work, count, wanted))
    take(four_hosts(count, wanted))  # last: from there on this process lives on a host of its own
    day = datetime.date.today().isoformat()
    for kind, times in seconds.items():
        good = len(times) - len(problems[kind])
        print(f"| {day} | {kind} | {good} of {len(times)} | {min(times):.1f} to {max(times):.1f} | {MACHINE} | "
              f"`{' '.join(['bench/stalls.py', str(count), *wanted])}` |")
    print(f"{time.time() - begin:.0f} s in all", file=sys.stderr)
    sys.exit(1 if any(problems.values()) else 0)


if __name__ == "__main__":
    main()
