#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds everything, runs every test. CTest's closing lines come last.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/test.sh [--no-install] [--sanitize | --sanitize-unit] [-- CTEST_OPTION ...]
  --no-install  take the libraries that are there
  --sanitize    unit and parity tests under AddressSanitizer and UndefinedBehaviorSanitizer instead (build/asan)
  --sanitize-unit  the same for the unit tests of network and io alone
  CTEST_OPTION  for instance -L unit, -R checkpoint
TEXT
}

install=1 preset=release targets=(all) selection=()
while [ $# -gt 0 ]; do
  case $1 in
    --no-install) install= ;;
    --sanitize) preset=asan targets=(tests/unit/all tests/parity/all) ;;
    --sanitize-unit) preset=asan targets=(unit_network unit.io.hdf5) selection=(-R '^(unit_network|unit.io.hdf5)$') ;;
    --) shift; break ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

[ -z "$install" ] || scripts/install-deps.sh
options=(-DCONVOY_TESTS=ON)
if [ "$preset" = release ]; then
  # Where the CUDA toolkit is, a build without the module would pass by leaving out its tests.
  if [ -n "$(command -v nvcc)" ] || [ -x /usr/local/cuda/bin/nvcc ]; then options+=(-DCONVOY_CUDA=ON); else options+=(-DCONVOY_CUDA=AUTO); fi
fi
scripts/build.sh "$preset" "${options[@]}" -- "${targets[@]}"
# An oversubscribed rank that spins in a wait starves the rank it waits for.
export OMPI_MCA_mpi_yield_when_idle=1
# Open MPI makes and removes one folder for all jobs of a host and user, and a job that starts at that moment fails: it stays.
sessions=$(mktemp -d)
trap 'rm -rf "$sessions"' EXIT
mkdir -p "$sessions/ompi.$(hostname -s).$(id -u)/stays"
export OMPI_MCA_orte_tmpdir_base=$sessions
export LSAN_OPTIONS=suppressions=$PWD/tests/support/leaks.supp:print_suppressions=0
# Most tests of programs wait more than they compute.
ctest --preset "$preset" --parallel 4 --no-tests=error "${selection[@]}" "$@"
