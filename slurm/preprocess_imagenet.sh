#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ImageNet to HDF5 partitions:  SOURCE=/shared/raw/imagenet DATA=/shared/imagenet sbatch slurm/preprocess_imagenet.sh [option ...]
# SOURCE: what convoy-preprocess KIND takes; KIND: imagenet, or another of its commands. A job that was cut off goes on
# with the partitions that are missing. Settings of the site: scripts/site.sh.
#SBATCH --job-name=preprocess
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=16
#SBATCH --cpus-per-task=1
#SBATCH --time=06:00:00
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
#SBATCH --open-mode=append
#SBATCH --output=preprocess-%j.log
{ cd "${CONVOY_HOME:-${SLURM_SUBMIT_DIR:-.}}" && . scripts/batch.sh slurm/preprocess_imagenet.sh; } ||
  { echo "$PWD is not the root of Convoy's source tree: submit from there, or set CONVOY_HOME to it" >&2; exit 2; }

partitions=${DATA:?a folder for the partitions}

launch "$preprocess" "${KIND:-imagenet}" --source "${SOURCE:?the images}" --out "$partitions" \
  --end-time "$(end_time)" "$@"
