#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The examination on a machine with a GPU and nothing else installed, in three parts of four minutes at most. Runs in a folder
# of scripts/bundle.sh, or in the repository after a release build. Its steps are in gpu-exam-steps.sh.
#
# It puts each result into its archive before it prints it, and replaces the archive instead of writing into it: a kill at any
# moment loses nothing that was printed.
set -uo pipefail
export LC_ALL=C
script=$0 words=("$@")
here=$(cd "$(dirname "$0")/.." && pwd)

usage() {
  cat <<'TEXT'
usage: scripts/gpu-exam.sh A|B|C [options]
  A   correctness, and where the time goes: facts, first steps, every operation against the reference, fused against
      unfused, throughput and the parts of a step, resume, two ranks, kernels under sanitizers. Needs no Python
  B   what failed in A, again; cold start, memory, measured tuning, 20 steps beside the CPU, NCCL, time to 94 % on CIFAR-10
  C   PyTorch, eager and compiled, in turns with Convoy
  --out DIR       exam-PART.tar.gz (results.json, a log of each step, plans, profiles) and exam-PART.txt, the table; both are
                  whole at every moment; default runs/gpu-exam
  --work DIR      for data and runs; default: a temporary folder that is removed at the end
  --data PATH     CIFAR-10: an archive of bench/cifar10_archive.py, or the folder of the official binary files. Without it the
                  times to 94 % are left out
  --again WHAT    B: steps of A to repeat, separated by commas, or the file of A's table: its failed steps
  --python EXE    C: an interpreter with PyTorch; default python3
  --only STEPS    only these steps, separated by commas
  --seconds N     time of the part; default 240
  --rehearse      small networks and few tests, for a machine without a GPU and stand-ins for its libraries
  --list          print the steps and their limits in seconds
Exit code 0: every step is ok or was left out; 1: some failed. The script ends a step that exceeds its limit, and counts it as
failed. Steps that failed run once more at the end, if there is time, with blocking launches and the libraries' logs.
TEXT
}

part=${1:-}
case $part in
  A | B | C) shift ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac
out=runs/gpu-exam work='' data='' again='' python=python3 only='' seconds=240 rehearse='' list=''
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=${2:?}; shift ;;
    --work) work=${2:?}; shift ;;
    --data) data=${2:?}; shift ;;
    --again) again=${2:?}; shift ;;
    --python) python=${2:?}; shift ;;
    --only) only=,${2:?},; shift ;;
    --seconds) seconds=${2:?}; shift ;;
    --rehearse) rehearse=1 ;;
    --list) list=1 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

# --- the steps of a part and their limits: with the two seconds in which a step may end they sum to less than the part's time
steps_of() {
  case $1 in
    A) echo "facts 8 smoke 40 parity 40 fusion 30 speed 38 same_bits 28 kernels 40" ;;
    B) echo "start 15 memory 12 tuning 62 to_94 45 curve 25 nccl 15" ;;
    C) echo "ours 15 torch 30 eager 40 compiled_50 50 compiled_18 25 compiled_20 25 torch_to_94 38" ;;
  esac
}
chosen() { [ -z "$only" ] || [[ $only == *,$1,* ]]; }
# again_within SECONDS: the steps of A that B repeats, in A's order as long as there is time. 0: there is none.
again_within() {
  local left=$1 names=$again name limit
  if [ -f "$names" ]; then names=$(awk -F ' [|] ' '$2 ~ /^failed/ { sub(/^[|] /, "", $1); print $1 }' "$names" | grep -v '[.]again$' | paste -sd,); fi
  while read -r name limit; do
    [[ ,$names, == *,$name,* ]] || continue
    [ "$limit" -le $((left - 2)) ] || limit=$((left - 2))
    [ "$limit" -ge 8 ] || limit=0
    [ "$limit" -eq 0 ] || left=$((left - limit - 2))
    echo "$name $limit"
  done < <(steps_of A | tr ' ' '\n' | paste -d ' ' - -)
}
read -ra steps <<<"$(steps_of "$part")"
if [ "$part" = B ] && [ -n "$again" ]; then
  left=$((seconds - 2))
  for ((i = 0; i < ${#steps[@]}; i += 2)); do
    if chosen "${steps[i]}"; then left=$((left - steps[i + 1] - 2)); fi
  done
  read -ra repeated <<<"$(again_within $left | paste -sd ' ')"
  steps=("${steps[@]:0:2}" "${repeated[@]}" "${steps[@]:2}") # after `start`, which must run first
fi
if [ -n "$list" ]; then
  printf '%s %s\n' "${steps[@]}"
  exit 0
fi

# --- where things are
if [ -e "$here/share/convoy/bundle" ]; then
  if [ -z "${CONVOY_BUNDLE:-}" ]; then
    export CONVOY_PYTHON=$python
    exec "$here/run" "$script" "${words[@]}"
  fi
  export tests=$here/tests golden=$here/tests/golden plans=$here/tests/plan kernels=$here/tests/gpu.kernels suffix=''
else
  build=${CONVOY_BUILD:-$here/build/release}
  export tests=$build/tests/parity golden=$here/tests/golden plans=$here/tests/cuda/plan/expected kernels=$build/tests/cuda/gpu.kernels suffix=.cpu
  PATH=$build/src/cli:$build/preprocess:$PATH
  export CONVOY_MODULE_DIR=${CONVOY_MODULE_DIR:-$build/src/cli}
fi
scratch=''
if [ -z "$work" ]; then scratch=$(mktemp -d) || exit; fi
work=${work:-$scratch}
mkdir -p "$out" "$work" || exit
out=$(cd "$out" && pwd) && work=$(cd "$work" && pwd) || exit
kept=$work/exam-$part # what the archive holds
rm -rf "$kept"
mkdir "$kept" || exit
[ -z "$data" ] || data=$(cd "$(dirname "$data")" && pwd)/$(basename "$data")
export here out work kept data python rehearse
: >"$kept/steps.tsv"
: >"$kept/values.tsv"

# --- one archive, one table
began=${EPOCHREALTIME/./}
tenths_since() { # MICROSECONDS: sets `tenths`, seconds with one decimal
  local passed=$((${EPOCHREALTIME/./} - $1))
  printf -v tenths '%d.%d' $((passed / 1000000)) $((passed / 100000 % 10))
}
plain() { # TEXT: sets `plained`, without what tables and JSON would have to escape
  plained=${1//[^ -~]/ }
  plained=${plained//[\"\\|]/ }
}
tables() {
  awk -F '\t' -v part="$part" -v rehearsal="$([ -n "$rehearse" ] && echo true || echo false)" -v table="$kept/table.txt" -v json="$kept/results.json" -v program="$program" -v card="$card" '
    FILENAME ~ /steps.tsv$/ { if (!($1 in result)) name[++n] = $1; result[$1] = $2; seconds[$1] = $3; note[$1] = $4; next }
    $2 == "failed" { if (++failures[$1] <= 40) failing[$1] = failing[$1] (failures[$1] == 1 ? "" : ", ") "\"" $3 "\""; next }
    { if (!(($1, $2) in value)) keys[$1, ++count[$1]] = $2; value[$1, $2] = $3 }
    END {
      print "| step | result | seconds | values |\n| --- | --- | --- | --- |" >table
      printf("{\"part\": \"%s\", \"rehearsal\": %s, \"card\": \"%s\", \"program\": \"%s\",\n \"steps\": [", part, rehearsal, card, program) >json
      for (i = 1; i <= n; ++i) {
        s = name[i]
        printf("| %s | %s%s | %s |", s, result[s], (note[s] == "" ? "" : ": " note[s]), seconds[s]) >table
        printf("%s\n  {\"name\": \"%s\", \"result\": \"%s\", \"seconds\": %s, \"note\": \"%s\", \"failed\": [%s], \"values\": {",
          (i == 1 ? "" : ","), s, result[s], seconds[s], note[s], failing[s]) >json
        if (failures[s]) printf(" %d failed: %s%s", failures[s], failing[s], (count[s] ? "," : "")) >table
        for (k = 1; k <= count[s]; ++k) {
          key = keys[s, k]; v = value[s, key]
          printf("%s %s %s", (k == 1 ? "" : ","), key, v) >table
          printf("%s\"%s\": %s", (k == 1 ? "" : ", "), key, (v ~ /^-?[0-9]+([.][0-9]+)?(e[-+]?[0-9]+)?$/ ? v : "\"" v "\"")) >json
        }
        print " |" >table
        printf "}}" >json
      }
      print "\n ]}" >json
    }' "$kept/steps.tsv" "$kept/values.tsv"
}
pack() {
  tables
  # A log that grows meanwhile is no error.
  { tar -C "$kept" -cf - . 2>/dev/null || [ $? -eq 1 ]; } | gzip -1 >"$out/exam-$part.new" && mv -f "$out/exam-$part.new" "$out/exam-$part.tar.gz"
  cp "$kept/table.txt" "$out/exam-$part.new" && mv -f "$out/exam-$part.new" "$out/exam-$part.txt"
  packed=$SECONDS
}
say() { # LINE ...
  printf '%s\n' "$@" >>"$kept/printed.txt"
  pack
  printf '%s\n' "$@"
}
state() { # STEP RESULT SECONDS NOTE: of a step, the last one counts
  plain "$4"
  printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$plained" >>"$kept/steps.tsv"
}

# --- running them
failed=() running='' lines='' pending='' label='' begin=0 batch=() packed=0
take() { # LINE of a step: VALUE KEY NUMBER, FACT KEY TEXT, FAILED TEXT
  local kind key text
  read -r kind key text <<<"$1"
  case $kind in
    VALUE | FACT) ;;
    FAILED) text="$key${text:+ $text}" key=failed ;;
    *) return ;;
  esac
  plain "$text"
  printf '%s\t%s\t%s\n' "$label" "$key" "$plained" >>"$kept/values.tsv"
  tenths_since "$began"
  printf -v line '%6s s  %-10s %s %s' "$tenths" "$label" "$key" "$plained"
  batch+=("$line")
}
flush() {
  [ ${#batch[@]} -eq 0 ] || say "${batch[@]}"
  batch=()
}
note_of() { # RC LIMIT LOG
  case $1 in
    0) ;;
    124 | 137) echo "ended after its limit of $2 s" ;;
    *) grep -av -e '^$' -e '^VALUE ' -e '^FACT ' "$3" | tail -n 1 | cut -c1-160 ;;
  esac
}
# end_group: the running step, with all that it started.
end_group() {
  kill -TERM "$running" 2>/dev/null
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    kill -0 "$running" 2>/dev/null || return
    sleep 0.1
  done
  kill -KILL -- "-$running" 2>/dev/null
}
# drain SECONDS: takes the lines that come without longer pauses.
drain() {
  local line
  while IFS= read -r -t "$1" -u "$lines" line; do
    take "$pending$line"
    pending=''
  done
  pending+=$line
  flush
}
# step NAME LIMIT [LABEL]: step_NAME in a shell of its own. 77: left out, its last line says why.
step() {
  local name=$1 limit=$2 left line='' rc result=failed log
  pending=''
  label=${3:-$name}
  log=$kept/$label.txt
  chosen "$name" || return 0
  left=$((seconds - SECONDS - 2))
  [ "$limit" -le "$left" ] || limit=$left
  if [ "$limit" -lt 3 ]; then
    state "$label" "left out" 0 "the part's time is up"
    return 0
  fi
  begin=${EPOCHREALTIME/./}
  state "$label" running 0 ''
  export label
  # shellcheck disable=SC2016
  exec {lines}< <(exec timeout -k 2 "$limit" bash -uo pipefail -c '. "$1" && cd "$2" && "step_$3"' "$name" \
    "$here/scripts/gpu-exam-steps.sh" "$work" "$name" 3>&1 >"$log" 2>&1)
  running=$!
  while :; do
    if IFS= read -r -t 0.25 -u "$lines" line; then
      take "$pending$line"
      pending=''
      drain 0.02 # those that came with it
      continue
    elif [ $? -le 128 ]; then # all that could write are gone
      break
    fi
    pending+=$line
    [ $((SECONDS - packed)) -lt 5 ] || pack
    if ! kill -0 "$running" 2>/dev/null; then
      drain 0.1 # what it wrote since
      break
    fi
  done
  exec {lines}<&-
  wait "$running"
  rc=$?
  running=''
  case $rc in
    0) result=ok ;;
    77) result="left out" ;;
    *) failed+=("$name $2") ;;
  esac
  tenths_since "$begin"
  state "$label" "$result" "$tenths" "$(note_of $rc "$limit" "$log")"
  for file in "$work/library.$label"/*; do
    if [ -e "$file" ]; then tail -c 300000 "$file" >"$kept/$label.${file##*/}"; fi
  done
  local took=$tenths
  tenths_since "$began"
  printf -v line '%6s s  %-10s %s after %s s %s' "$tenths" "$label" "$result" "$took" "$plained"
  say "$line"
}
ended() { # SIGNAL
  trap '' TERM INT HUP
  if [ -n "$running" ]; then
    end_group
    drain 0.1
  fi
  if [ -n "$label" ]; then
    tenths_since "$begin"
    state "$label" failed "$tenths" "the examination was ended by $1"
  fi
  say "gpu-exam $part: ended by $1 after $SECONDS s; $out/exam-$part.tar.gz"
  [ -z "$scratch" ] || rm -rf "$scratch"
  exit 143
}
trap 'ended TERM' TERM
trap 'ended INT' INT
trap 'ended HUP' HUP
trap : PIPE # if the reader ends, the archive is still made

program=$(convoy --version 2>&1 | tr -d '"' | paste -sd ';')
card=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
say "gpu-exam $part${rehearse:+, a rehearsal}: $(date -u +%Y-%m-%dT%H:%M:%SZ), $seconds s; ${program%%;*}"
[ -n "$card" ] || { say "gpu-exam: nvidia-smi shows no GPU; tests/cuda/exam rehearses with stand-ins"; exit 1; }
say "card: $card"
for ((i = 0; i < ${#steps[@]}; i += 2)); do step "${steps[i]}" "${steps[i + 1]}"; done
broken=("${failed[@]}")
for entry in "${broken[@]}"; do
  read -r name limit <<<"$entry"
  mkdir -p "$work/library.$name.again"
  CUDA_LAUNCH_BLOCKING=1 CUDNN_LOGLEVEL_DBG=3 CUDNN_LOGDEST_DBG=$work/library.$name.again/cudnn.txt CUDNN_FRONTEND_LOG_INFO=1 \
    CUDNN_FRONTEND_LOG_FILE=$work/library.$name.again/frontend.txt NCCL_DEBUG=INFO NCCL_DEBUG_FILE=$work/library.$name.again/nccl.txt \
    step "$name" "$limit" "$name.again"
done
label=''
say '' "$(tables && cat "$kept/table.txt")" "gpu-exam $part: ${#broken[@]} steps failed, $SECONDS s; $out/exam-$part.tar.gz"
[ -z "$scratch" ] || rm -rf "$scratch"
[ ${#broken[@]} -eq 0 ]
