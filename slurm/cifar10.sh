#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ResNet-20 on CIFAR-10, on CPU or GPU nodes:  DATA=/shared/cifar10 sbatch slurm/cifar10.sh [option of convoy train ...]
# On GPU nodes:  DATA=/shared/cifar10 sbatch --gpus-per-node=2 slurm/cifar10.sh
# DATA: folder of convoy-preprocess (none: synthetic images); CONFIG, OUTPUT: see below. Settings of the site: scripts/site.sh.
#SBATCH --job-name=cifar10
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --signal=B:USR1@180
#SBATCH --open-mode=append
#SBATCH --output=cifar10-%j.log
{ cd "${CONVOY_HOME:-${SLURM_SUBMIT_DIR:-.}}" && . scripts/batch.sh slurm/cifar10.sh; } ||
  { echo "$PWD is not the root of Convoy's source tree: submit from there, or set CONVOY_HOME to it" >&2; exit 2; }

run_directory=${OUTPUT:-runs/cifar10}
data=(--synthetic)
[ -z "${DATA:-}" ] || data=(--data "$DATA")

launch "$convoy" train --config "${CONFIG:-configs/cifar10_resnet20.cfg}" "${data[@]}" --output-dir "$run_directory" \
  "${device[@]}" --resume auto --end-time "$(end_time)" "$@"
