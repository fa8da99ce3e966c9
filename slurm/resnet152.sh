#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ResNet-152 on ImageNet under Slurm:  DATA=/shared/imagenet sbatch slurm/resnet152.sh
# DATA: folder of convoy-preprocess (none: synthetic images); CONFIG, OUTPUT, CONVOY: see below; EXTRA: further options.
#SBATCH --job-name=resnet152
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=4
#SBATCH --time=24:00:00
#SBATCH --signal=USR1@300
#SBATCH --open-mode=append
#SBATCH --output=resnet152-%j.log
set -euo pipefail
cd "$SLURM_SUBMIT_DIR"

export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
export HDF5_USE_FILE_LOCKING=FALSE # parallel file systems are often mounted without locks; partitions are only read
convoy=${CONVOY:-build/release/src/cli/convoy}
config=${CONFIG:-configs/imagenet_resnet152.cfg}
output=${OUTPUT:-runs/resnet152}
data=(--synthetic)
[ -z "${DATA:-}" ] || data=(--data "$DATA")

# USR1 comes 300 s before the time limit: checkpoint, exit code 75; the same command goes on from there.
# shellcheck disable=SC2086  # EXTRA is a list of words
exec srun --cpus-per-task="$OMP_NUM_THREADS" "$convoy" train --config "$config" "${data[@]}" --output-dir "$output" --resume auto ${EXTRA:-}
