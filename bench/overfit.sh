#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Learns a few hundred photographs by heart: prepares them at 112 px, trains on 2 ranks without augmentation, evaluates on the same
# images and prints a line for bench/results.md. Too few images to learn anything else: a network that can't must be wrong.
# usage: [BATCH=16] bench/overfit.sh ARCHIVE|FOLDER MODEL EPOCHS [OPTION ...]    ARCHIVE: with train/CLASS/*.JPEG inside; BATCH: of a rank
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

[ $# -ge 3 ] || { sed -n 's/^# usage: //p' "$0" >&2; exit 2; }
source=$(realpath "$1") model=$2 epochs=$3
shift 3
convoy=${CONVOY:-$here/build/release/src/cli/convoy} preprocess=${CONVOY_PREPROCESS:-$here/build/release/preprocess/convoy-preprocess}
if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
export OMPI_MCA_mpi_yield_when_idle=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

if [ -f "$source" ]; then
  mkdir "$folder/source"
  tar xf "$source" -C "$folder/source"
  source=$folder/source
fi
"$preprocess" folder --train "$source/train" --sizes 112 --partitions 2 --threads 2 --out "$folder/data" >"$folder/prepare.log" 2>&1 ||
  { cat "$folder/prepare.log" >&2; exit 1; }
begin=$EPOCHREALTIME
mpirun --bind-to none -np 2 "$convoy" train --data "$folder/data" --model "$model" --epochs "$epochs" --batch-size "${BATCH:-16}" --augment none \
  --sync gradients --threads 1 --skip-eval --no-tensorboard --save-every 0 --print-freq 1000 --output-dir "$folder/run" "$@"
seconds=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.0f", b - a }')
mpirun --bind-to none -np 2 "$convoy" evaluate "$folder/run" --data "$folder/data" --split train --threads 1 --output-dir "$folder/result" >/dev/null
result=$(tr -d '\n "' <"$folder/result/result.json")
field() { sed -n "s/.*[{,]$1:\([^,}]*\).*/\1/p" <<<"$result"; }
machine="$(nproc) x $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)"
echo "| $(date +%F) | $model, 112 px, $epochs epochs${*:+, $*} | $(awk -v v="$(field top1)" 'BEGIN { printf "%.2f", v }') % ($(field top1_count) of $(field images)) | $seconds | $machine | \`bench/overfit.sh\` |"
