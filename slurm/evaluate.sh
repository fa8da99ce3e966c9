#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Accuracy of a checkpoint:  RUN=runs/resnet152 DATA=/shared/imagenet sbatch slurm/evaluate.sh [option of convoy evaluate ...]
# RUN: a run directory (its best checkpoint), a folder of checkpoints or a file. result.json and the tables of classes go to
# OUTPUT. Settings of the site: scripts/site.sh.
#SBATCH --job-name=evaluate
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=evaluate-%j.log
{ cd "${CONVOY_HOME:-${SLURM_SUBMIT_DIR:-.}}" && . scripts/batch.sh slurm/evaluate.sh; } ||
  { echo "$PWD is not the root of Convoy's source tree: submit from there, or set CONVOY_HOME to it" >&2; exit 2; }

keeps_nothing=1

launch "$convoy" evaluate "${RUN:?a run directory}" --data "${DATA:?a folder of convoy-preprocess}" \
  --output-dir "${OUTPUT:-runs/evaluate-$SLURM_JOB_ID}" "${device[@]}" --end-time "$(end_time)" "$@"
