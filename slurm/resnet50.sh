#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ResNet-50 on ImageNet, one rank per GPU:  DATA=/shared/imagenet sbatch --nodes=4 slurm/resnet50.sh [option of convoy train ...]
# DATA: folder of convoy-preprocess (none: synthetic images, a good first job on a new machine); CONFIG, OUTPUT: see below.
# Settings of the site: scripts/site.sh.
#SBATCH --job-name=resnet50
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --signal=B:USR1@300
#SBATCH --open-mode=append
#SBATCH --output=resnet50-%j.log
{ cd "${CONVOY_HOME:-${SLURM_SUBMIT_DIR:-.}}" && . scripts/batch.sh slurm/resnet50.sh; } ||
  { echo "$PWD is not the root of Convoy's source tree: submit from there, or set CONVOY_HOME to it" >&2; exit 2; }

run_directory=${OUTPUT:-runs/resnet50}
data=(--synthetic)
[ -z "${DATA:-}" ] || data=(--data "$DATA")

launch "$convoy" train --config "${CONFIG:-configs/imagenet_resnet50.cfg}" "${data[@]}" --output-dir "$run_directory" \
  --device "$gpu_device" --resume auto --end-time "$(end_time)" "$@"
