# SPDX-License-Identifier: Apache-2.0
"""Usage: deaths_test.py [KIND HOST LAUNCHER]"""
import sys

from cluster import Cluster, enter_or_skip
from deaths import run_death
from training import Training

CASES = [("freeze", "n1", "mpirun"), ("crash", "n2", "mpirun"), ("cut", "n3", "srun --mpi=pmix")]


def main():
    cases = [tuple(sys.argv[1:4])] if len(sys.argv) > 3 else CASES
    with Cluster(enter_or_skip()) as cluster:
        training = Training(cluster)
        reference = training.reference(4)
        for kind, host, launcher in cases:
            run_death(training, kind, host, launcher, reference)


if __name__ == "__main__":
    main()
