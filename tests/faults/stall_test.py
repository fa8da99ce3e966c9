# SPDX-License-Identifier: Apache-2.0
"""Deaths and stalls of jobs on 3 and 4 ranks: they end in time, with the right code, one line names who and where, and nothing is
left. The jobs mostly wait, so they run side by side. A busy machine may miss deadlines of seconds: what failed runs again alone, with
longer ones."""
import concurrent.futures
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import dying_jobs as dying  # noqa: E402
from runner import check, work_folder  # noqa: E402


def attempt(case, work):
    try:
        return case(work)
    except (subprocess.TimeoutExpired, KeyError) as e:  # it never began, or never ended
        return dying.Ended(None, 0, "", {}, []), repr(e)


def main():
    with work_folder() as work:
        dying.prepared(work)
        cases = {"rank 2 frozen": lambda work: dying.frozen(work, 2), "rank 0 frozen": lambda work: dying.frozen(work, 0),
                 "rank 3 killed": lambda work: dying.killed(work, 3), "rank 0 killed": lambda work: dying.killed(work, 0),
                 "a read stuck": lambda work: dying.stuck(work), "a read stuck, no watchdog": lambda work: dying.stuck_unwatched(work),
                 "a partition unreadable": lambda work: dying.unreadable(work), "an exception": lambda work: dying.thrown(work, 2),
                 "a rank frozen, no run directory": lambda work: dying.frozen_without_run_directory(work),
                 "no place for heartbeats": lambda work: dying.unwritable_heartbeats(work),
                 "heartbeats lost": lambda work: dying.lost_heartbeats(work)}
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            running = {name: pool.submit(attempt, case, work) for name, case in cases.items()}
            results = {name: job.result() for name, job in running.items()}
        os.mkdir(f"{work}/again")
        dying.slowness = 4
        for name in [name for name, (_, problem) in results.items() if problem is not None]:
            print(f"again: {name}: {results[name][1]}")
            results[name] = attempt(cases[name], f"{work}/again")
        for name, (ended, problem) in results.items():
            said = "" if problem is None else f": {problem}\n{ended.said[-3000:]}\n{ended.beats}"
            check(problem is None, f"{name}: code {ended.code} after {ended.seconds:.1f} s{said}")


if __name__ == "__main__":
    main()
