#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds everything, runs every test. CTest's closing lines come last.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/test.sh [--no-install] [--sanitize [QUARTER] | --sanitize-threads] [-- CTEST_OPTION ...]
  --no-install  take the libraries that are there
  --sanitize    unit and parity tests under AddressSanitizer and UndefinedBehaviorSanitizer with the library's assertions
                instead (build/asan); QUARTER: 0 to 3, one quarter of them without the golden networks
  --sanitize-threads  the loader and what watches a run under ThreadSanitizer (build/tsan)
  CTEST_OPTION  for instance -L unit, -R checkpoint
TEXT
}

# Each quarter needs few libraries of src; the last one has all that the others haven't.
quarters=('^unit(_nearest|_network|\.(core|io|image|optim))' '^unit\.(data|data_prepare|preparation)'
  '^(unit\.backend|parity\.(cpu_program|operations|program|reference))')
watched='^(unit\.data\.loader|unit\.run)$'

install=1 preset=release targets=(all) quarter='' selection=()
while [ $# -gt 0 ]; do
  case $1 in
    --no-install) install= ;;
    --sanitize)
      preset=asan targets=(tests/unit/all tests/parity/all)
      if [[ ${2:-} =~ ^[0-3]$ ]]; then quarter=$2; shift; fi
      ;;
    --sanitize-threads) preset=tsan targets=(unit.data.loader unit.run) selection=(-R "$watched") ;;
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
if [ -n "$quarter" ]; then
  if [ "$quarter" = 3 ]; then
    selection=(-E "$(IFS='|'; echo "${quarters[*]}")|^parity")
  else
    selection=(-R "${quarters[quarter]}")
  fi
  # Programs have the names of their tests; scripts run probes beside them.
  scripts/build.sh "$preset" "${options[@]}" -- help >/dev/null
  mapfile -t targets < <(ctest --preset "$preset" -N "${selection[@]}" 2>/dev/null | sed -nE 's/^ *Test +#[0-9]+: //p' | sed 's/\.avx2$//' | sort -u |
    grep -Fxf <(ninja -C "build/$preset" -t targets all | sed -n 's/: phony$//p'))
  case $quarter in
    0) targets+=(image_probe job_start_probe) ;;
    1) targets+=(pipeline_probe) ;;
  esac
fi
scripts/build.sh "$preset" "${options[@]}" -- "${targets[@]}"
# An oversubscribed rank that spins in a wait starves the rank it waits for.
export OMPI_MCA_mpi_yield_when_idle=1
# Open MPI makes and removes one folder for all jobs of a host and user, and a job that starts at that moment fails: it stays.
sessions=$(mktemp -d)
trap 'rm -rf "$sessions"' EXIT
mkdir -p "$sessions/ompi.$(hostname -s).$(id -u)/stays"
export OMPI_MCA_orte_tmpdir_base=$sessions
export TSAN_OPTIONS=suppressions=$PWD/tests/support/races.supp
export LSAN_OPTIONS=suppressions=$PWD/tests/support/leaks.supp:print_suppressions=0
# Most tests of programs wait more than they compute.
ctest --preset "$preset" --parallel 4 --no-tests=error "${selection[@]}" "$@" && exit
# A busy machine misses deadlines. If at most five tests failed, they run once more, one at a time; only a second failure counts.
failed=build/$preset/Testing/Temporary/LastTestsFailed.log
[ -s "$failed" ] && [ "$(wc -l <"$failed")" -le 5 ] || exit 1
printf '\nfailed beside other tests, run again alone: %s\n' "$(cut -d: -f2 "$failed" | paste -sd ' ')"
ctest --preset "$preset" --rerun-failed "$@"
