#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One run for each pair of a seed and a rate, as a job array, two at a time:
#   DATA=/shared/cifar10 SEEDS='1 2 3' RATES='0.05 0.1 0.2' sbatch --array=0-8%2 slurm/sweep.sh [option of convoy train ...]
# Then: convoy summary runs/sweep/*. CONFIG, OUTPUT: see below. Settings of the site: scripts/site.sh.
#SBATCH --job-name=sweep
#SBATCH --array=0-3
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --signal=B:USR1@180
#SBATCH --open-mode=append
#SBATCH --output=sweep-%A_%a.log
{ cd "${CONVOY_HOME:-${SLURM_SUBMIT_DIR:-.}}" && . scripts/batch.sh slurm/sweep.sh; } ||
  { echo "$PWD is not the root of Convoy's source tree: submit from there, or set CONVOY_HOME to it" >&2; exit 2; }

read -ra seeds <<<"${SEEDS:-1 2}"
read -ra rates <<<"${RATES:-0.05 0.1}"
seed=${seeds[SLURM_ARRAY_TASK_ID % ${#seeds[@]}]}
rate=${rates[SLURM_ARRAY_TASK_ID / ${#seeds[@]}]:?the array is longer than seeds times rates}
run_directory=${OUTPUT:-runs/sweep}/lr-$rate-seed-$seed
data=(--synthetic)
[ -z "${DATA:-}" ] || data=(--data "$DATA")

launch "$convoy" train --config "${CONFIG:-configs/cifar10_resnet20.cfg}" "${data[@]}" --seed "$seed" --lr "$rate" \
  --output-dir "$run_directory" "${device[@]}" --resume auto --end-time "$(end_time)" "$@"
