# SPDX-License-Identifier: Apache-2.0
"""Deaths and stalls of jobs on 3 and 4 ranks: they end in time, with the right code, one line names who and where, and nothing is
left. The jobs mostly wait, so they run side by side."""
import concurrent.futures
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import dying_jobs as dying  # noqa: E402
from runner import check, work_folder  # noqa: E402


def main():
    with work_folder() as work:
        dying.prepared(work)
        cases = {"rank 2 frozen": lambda: dying.frozen(work, 2), "rank 0 frozen": lambda: dying.frozen(work, 0),
                 "rank 3 killed": lambda: dying.killed(work, 3), "rank 0 killed": lambda: dying.killed(work, 0),
                 "a read stuck": lambda: dying.stuck(work), "a read stuck, no watchdog": lambda: dying.stuck_unwatched(work),
                 "a partition unreadable": lambda: dying.unreadable(work), "an exception": lambda: dying.thrown(work, 2),
                 "a rank frozen, no run directory": lambda: dying.frozen_without_run_directory(work),
                 "no place for heartbeats": lambda: dying.unwritable_heartbeats(work),
                 "heartbeats lost": lambda: dying.lost_heartbeats(work)}
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            running = {name: pool.submit(case) for name, case in cases.items()}
            results = {name: job.result() for name, job in running.items()}
        for name, (ended, problem) in results.items():
            said = "" if problem is None else f": {problem}\n{ended.said[-3000:]}\n{ended.beats}"
            check(problem is None, f"{name}: code {ended.code} after {ended.seconds:.1f} s{said}")


if __name__ == "__main__":
    main()
