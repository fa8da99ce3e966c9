# SPDX-License-Identifier: Apache-2.0
"""Usage: deaths_test.py [COUNT [SEED]]: so many deaths, each kind in turn, of random hosts, under mpirun and srun (bench/deaths.sh);
without, one of each kind."""
import random
import sys

from cluster import Cluster, enter_or_skip
from deaths import ABORT, GRACE, run_death
from training import Training

CASES = [("freeze", "n1", "mpirun"), ("crash", "n2", "mpirun"), ("cut", "n3", "srun --mpi=pmix")]


def random_cases(count, seed):
    rng = random.Random(seed)
    return [(CASES[i % 3][0], rng.choice(["n0", "n1", "n2", "n3"]), rng.choice(["mpirun", "srun --mpi=pmix"])) for i in range(count)]


def main():
    cases = random_cases(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1) if len(sys.argv) > 1 else CASES
    seconds = []
    with Cluster(enter_or_skip()) as cluster:
        training = Training(cluster)
        reference = training.reference(4)
        for kind, host, launcher in cases:
            seconds.append(run_death(training, kind, host, launcher, reference))
    print(f"{len(seconds)} of {len(cases)} named within {max(seconds):.1f} s (allowed: {ABORT} + {GRACE} s), and nothing was left")


if __name__ == "__main__":
    main()
