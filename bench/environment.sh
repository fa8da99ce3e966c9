# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by benchmarks that run the scripts of tests/ in the root of the source tree.
export CONVOY_SOURCE=$PWD CONVOY=${CONVOY:-$PWD/build/release/src/cli/convoy}
export CONVOY_PREPROCESS=${CONVOY_PREPROCESS:-$PWD/build/release/preprocess/convoy-preprocess}
export OMPI_MCA_mpi_yield_when_idle=1 CONVOY_REQUIRE_SLURM=1
if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
