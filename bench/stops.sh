#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stops a job at random moments (at start-up, in a step, in an evaluation, while a checkpoint is written) in random ways (USR1, TERM, kill
# -9 of a rank, of mpirun, of all) UNDER_MPIRUN times, and a Slurm job of four ranks on four hosts (a signal, a requeue, kill -9 of a
# rank and of the launcher, a host that crashes) ON_SLURM times; every run must end with the bits of one that was left alone. The latter
# needs root and Slurm's packages.  usage: bench/stops.sh [UNDER_MPIRUN [ON_SLURM [SEED]]]
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/environment.sh
[ "${1:-180}" = 0 ] || .venv/bin/python tests/faults/random_stops_test.py "${1:-180}" "${3:-1}"
[ "${2:-20}" = 0 ] || .venv/bin/python tests/slurm/stops_test.py $(((${2:-20} + 4) / 5)) "${3:-1}"
