#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Freezes a rank, crashes a host or cuts its cable in a Slurm job of four ranks on four hosts, COUNT times in all; every time who is
# missing must be named within the watchdog time + 10 s (after a crash under mpirun perhaps beside one rank that mpirun ended) and
# nothing may be left. Needs root and Slurm's packages.
# usage: bench/deaths.sh [COUNT [SEED]]
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/environment.sh
exec .venv/bin/python tests/slurm/deaths_test.py "${1:-20}" "${2:-1}"
