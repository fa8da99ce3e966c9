#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Stands for the program in job scripts where it lives in an Apptainer image: CONVOY=packaging/in-container.sh, CONVOY_IMAGE the image.
# CONVOY_BIND: further folders that the ranks must see, comma-separated; CONVOY_PROGRAM: convoy or convoy-preprocess.
gpus=''
[ ! -e /dev/nvidiactl ] || gpus=--nv
exec apptainer exec $gpus ${CONVOY_BIND:+--bind "$CONVOY_BIND"} "${CONVOY_IMAGE:?path of the image}" "${CONVOY_PROGRAM:-convoy}" "$@"
