#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kills a run with -9 at 20 random steps in both modes of averaging and compares its end with a run that was left alone, bit
# for bit. CI kills 3 times.  usage: bench/resume.sh [KILLS]
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
export CONVOY=${CONVOY:-$PWD/build/release/src/cli/convoy} CONVOY_PREPROCESS=${CONVOY_PREPROCESS:-$PWD/build/release/preprocess/convoy-preprocess}
export OMPI_MCA_mpi_yield_when_idle=1
exec .venv/bin/python tests/end_to_end/resume_test.py "${1:-20}"
