#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that saves without pause is killed with -9 twenty times, each time after its first save of the round or in the
# middle of one. Every restart must find a whole checkpoint, no older than the last that was reported saved.
set -euo pipefail
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Without isolation Open MPI starts a daemon for a program without mpirun, and a daemon whose program was killed removes
# the session folder that the next one is just making.
export OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_pml=ob1 OMPI_MCA_btl=self

last=0
for round in $(seq 20); do
  "$program" "$folder/checkpoints" 100000 >"$folder/log" 2>"$folder/errors" &
  pid=$!
  for _ in $(seq 500); do # until it has resumed: 5 s are plenty
    grep -q '^resumed' "$folder/log" && break
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.01
  done
  sleep "0.$((RANDOM % 35 + 10))" # 0.10 to 0.44 s: in the first saves
  kill -9 "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
  resumed=$(sed -n 's/^resumed //p' "$folder/log")
  if [ -z "$resumed" ] || [ "$resumed" -lt "$last" ]; then
    echo "round $round: resumed at '${resumed}', but step $last had been saved" >&2
    cat "$folder/errors" >&2
    ls -l "$folder/checkpoints" >&2
    exit 1
  fi
  saved=$(sed -n 's/^saved //p' "$folder/log" | tail -n 1)
  last=${saved:-$resumed}
done
"$program" "$folder/checkpoints" 0 >"$folder/log"
if [ "$last" -lt 10 ]; then
  echo "only $last steps were saved in 20 rounds: the kills came too early to test anything" >&2
  exit 1
fi
if ls "$folder"/checkpoints/*.damaged 2>/dev/null; then
  echo "a save left a damaged checkpoint" >&2
  exit 1
fi
echo "20 kills, $(cat "$folder/log") of $last saved"
