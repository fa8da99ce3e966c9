# SPDX-License-Identifier: Apache-2.0
"""Random stops under mpirun, some jobs side by side since they mostly wait. Usage: random_stops_test.py [STOPS [SEED]]"""
import collections
import concurrent.futures
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from random_stops import JOB, MOMENTS, WAYS, disturb  # noqa: E402
from runner import check, train, work_folder  # noqa: E402

SIDE_BY_SIDE = 4


def main():
    stops, seed = int(sys.argv[1]) if len(sys.argv) > 1 else 20, int(sys.argv[2]) if len(sys.argv) > 2 else 1
    began = time.monotonic()
    with work_folder() as work:
        train(2, f"{work}/reference", *JOB)
        shares = [stops // SIDE_BY_SIDE + (i < stops % SIDE_BY_SIDE) for i in range(SIDE_BY_SIDE)]
        with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            outcomes = list(pool.map(lambda i: disturb(f"{work}/reference", f"{work}/run-{i}", shares[i], 1000 * seed + i), range(SIDE_BY_SIDE)))
    for outcome in outcomes:
        check(outcome.problem is None, f"{len(outcome.stops)} stops in {outcome.starts} starts {outcome.problem or ''}")
    done = [stop for outcome in outcomes for stop in outcome.stops]
    for names, part in ((WAYS, 0), (MOMENTS, 1)):
        numbers = collections.Counter(stop[part] for stop in done)
        print(", ".join(f"{numbers[name]} {name}" for name in names))
    print("exit codes:", dict(sorted(collections.Counter(stop[2] for stop in done).items())))
    check(len(done) == stops, f"{len(done)} of {stops} stops resumed to the same bits, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
