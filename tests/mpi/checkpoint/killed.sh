#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that saves without pause is killed with -9 twenty times, after saves of the round or in the middle of one. Every restart must find a whole checkpoint, no older than the last that was reported saved.
set -euo pipefail
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self

last=0
for round in $(seq 20); do
  "$program" "$folder/checkpoints" 100000 >"$folder/log" 2>"$folder/errors" &
  pid=$!
  # Even rounds end in the first save, or somewhat later; odd ones in a later save.
  [ $((round % 2)) = 0 ] && awaited='^resumed' || awaited='^saved'
  for _ in $(seq 6000); do
    grep -q "$awaited" "$folder/log" && break
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.01
  done
  sleep "0.$((RANDOM % 35 + 10))" # 0.10 to 0.44 s
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
