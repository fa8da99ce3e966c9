#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone to a trained network: installs what is missing, builds the two programs, makes a tiny data set, trains
# on two ranks and prints the accuracy on held-out images. May be run again: what is done is not done twice.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/quickstart.sh [--no-install] [FOLDER]
  --no-install  take the libraries that are there
  FOLDER        for data and results; default runs/quickstart
TEXT
}

install=1 folder=runs/quickstart
for argument in "$@"; do
  case $argument in
    --no-install) install= ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) folder=$argument ;;
  esac
done

say() { printf '\n== %s\n' "$*"; }

# The CUDA module takes longer to compile than all the rest, and its packages are large.
options=() packages=(--build-only)
if [ ! -e build/release/CMakeCache.txt ]; then
  options=(-DCONVOY_TESTS=OFF)
  if ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
    options+=(-DCONVOY_CUDA=OFF) packages+=(--no-cuda)
    echo "no GPU is visible here: without the CUDA module (scripts/test.sh builds it)"
  fi
elif grep -q '^CONVOY_CUDA:[A-Z]*=OFF' build/release/CMakeCache.txt; then
  packages+=(--no-cuda)
fi

if [ -n "$install" ]; then
  say "installing what is missing"
  scripts/install-deps.sh "${packages[@]}"
fi

say "building convoy and convoy-preprocess"
scripts/build.sh release "${options[@]}" -- convoy convoy-preprocess
convoy=build/release/src/cli/convoy preprocess=build/release/preprocess/convoy-preprocess

# mpirun refuses root unless told; more ranks than cores need to be allowed.
if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
export OMPI_MCA_mpi_yield_when_idle=1

say "making the data set $folder/data"
"$preprocess" synthetic --out "$folder/data" --partitions 3

say "training on two ranks"
output=$folder/train
rm -rf "$output"
mpirun --oversubscribe --bind-to none -np 2 "$convoy" train --config configs/tiny.cfg --data "$folder/data" \
  --output-dir "$output"

# The last validation record: {"split":"val",...,"top1":97.25,...}
accuracy=$(grep '"split":"val"' "$output/metrics.jsonl" | tail -n 1 | grep -oE '"top1":[0-9.]+' | cut -d: -f2)
say "accuracy on held-out images: ${accuracy:-none} %   (results: $output)"
if ! awk -v a="${accuracy:-0}" 'BEGIN { exit !(a > 90) }'; then
  echo "quickstart: the network did not learn (more than 90 % are expected); see $output/metrics.jsonl" >&2
  exit 1
fi
say "next"
printf '%s\n' "  $convoy evaluate $output" "  $convoy report $output    # one HTML page" \
  "  README.md, 'Your own photos': five commands for a folder of photos"
