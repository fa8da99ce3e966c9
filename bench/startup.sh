#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Seconds from `mpirun -np 2` to the first finished step of the tiny network, and of an MPI program that does nothing, by
# turns. Prints medians, ranges and a line for bench/results.md.  usage: bench/startup.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${1:-9}
convoy=${CONVOY:-build/release/src/cli/convoy}
if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/empty.c" <<'C'
#include <mpi.h>
int main(int argc, char** argv) { MPI_Init(&argc, &argv); MPI_Finalize(); return 0; }
C
mpicc -O2 -o "$folder/empty" "$folder/empty.c"

since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.3f\n", b - a }'; }

first_step() {
  local begin=$EPOCHREALTIME seconds='' line
  while IFS= read -r line; do
    if [ -z "$seconds" ] && [[ $line == *" step 1/"* ]]; then seconds=$(since "$begin"); fi
  done < <(mpirun --bind-to none -np 2 "$convoy" train --config configs/tiny.cfg --synthetic --synthetic-samples 256 \
    --max-steps 1 --print-freq 1 --skip-eval --no-checkpoints --no-tensorboard --output-dir "$folder/run" 2>&1)
  rm -rf "$folder/run"
  [ -n "$seconds" ] || { echo "startup: no step was printed" >&2; exit 1; }
  echo "$seconds"
}

empty_program() {
  local begin=$EPOCHREALTIME
  mpirun --bind-to none -np 2 "$folder/empty"
  since "$begin"
}

for _ in $(seq "$rounds"); do
  first_step >>"$folder/ours"
  empty_program >>"$folder/nothing"
done

summary() { sort -n "$1" | awk '{ v[NR] = $1 } END { printf "%.3f (%.3f to %.3f)", v[int((NR + 1) / 2)], v[1], v[NR] }'; }
machine=$(awk -F': ' '/^model name/ { print $2; exit }' /proc/cpuinfo)
echo "| $(date +%F) | $(summary "$folder/ours") | $(summary "$folder/nothing") | $rounds | $(nproc) x $machine |"
