#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Starts Open MPI's daemon on another host of a PBS job where Open MPI was built without tm. mpirun hands its agent a host and
# a shell command line; pbs_tmrsh takes an argument vector and runs no shell.
host=$1
shift
exec pbs_tmrsh "$host" /bin/sh -c "$*"
