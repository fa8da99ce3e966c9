#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The examination on a GPU, in two halves of at most five minutes: is it right, and is it fast. Runs in the repository after a
# release build, or in a folder of scripts/bundle.sh, started through its `run`.
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

usage() {
  cat <<'TEXT'
usage: scripts/gpu-check.sh first|second [options]
  first           parity of every operation, golden networks, loss curve, resume, two ranks, NCCL, launches
  second          throughput and time to 94 % beside PyTorch, cold start, memory
  --out DIR       results.json, table.txt and a log of each step; default runs/gpu-check-HALF
  --data DIR      official binary files of CIFAR-10, for the time to 94 %; without it that step is left out
  --python EXE    an interpreter with PyTorch; default python3. Without PyTorch its steps are left out
  --only STEPS    these alone, by commas
  --rehearse      the same commands, small, on the CPU: shows that each of them works, measures nothing
Exit code 0: every step that ran is ok; 1: some are not. A step that takes too long is ended and counts as failed.
TEXT
}

half=${1:-}
case $half in
  first | second) shift ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac
out='' data='' python=python3 only='' rehearse=''
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=${2:?}; shift ;;
    --data) data=${2:?}; shift ;;
    --python) python=${2:?}; shift ;;
    --only) only=,${2:?},; shift ;;
    --rehearse) rehearse=1 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

# --- where things are
set -a
if [ -e "$here/share/convoy/bundle" ]; then
  tests=$here/tests golden=$here/tests/golden suffix=''
  [ -n "${CONVOY_BUNDLE:-}" ] || CONVOY_PYTHON=$python exec "$here/run" "$0" "$half" ${out:+--out "$out"} ${data:+--data "$data"} --python "$python" \
    ${only:+--only "${only:1:-1}"} ${rehearse:+--rehearse}
else
  build=${CONVOY_BUILD:-$here/build/release}
  tests=$build/tests/parity golden=$here/tests/golden suffix=.cpu
  PATH=$build/src/cli:$build/preprocess:$PATH
  export CONVOY_MODULE_DIR=${CONVOY_MODULE_DIR:-$build/src/cli}
fi
export rehearse data python
out=${out:-runs/gpu-check-$half}
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)
export CONVOY_GOLDEN_DIR=$golden CONVOY_REQUIRE_GPU=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
  OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1
peers=$here/bench/peer
device=cuda fp16=fp16 large=256 middle=512 small=128 steps=40 patience=1
if [ -n "$rehearse" ]; then
  device=cpu fp16=fp32 large=2 middle=4 small=4 steps=2 patience=5
  unset CONVOY_REQUIRE_GPU
fi
export CONVOY_TEST_DEVICE=$device
has_torch=''
"$python" -c 'import torch' 2>/dev/null && has_torch=1
launcher=''
set +a

# --- what the steps use. They run in shells of their own, since only a command can be given to timeout.
set -a # variables and functions from here on are seen there
leave() { echo "$*"; exit 77; }
value() { echo "VALUE $1 $2"; } # KEY NUMBER, for the result
# losses FOLDER: of the training steps, one a line, in order.
losses() { grep '"split":"train"' "$1/metrics.jsonl" | sed -E 's/.*"loss":([^,}]+).*/\1/'; }
# compare A B LIMIT [PREFIX]: the largest difference of two columns relative to the larger; fails above LIMIT, on unlike
# lengths, or where one is no number (null: not finite). PREFIX tells two results of a step apart.
compare() {
  paste "$1" "$2" | awk -v limit="$3" -v prefix="${4:-}" '
    { d = $1 - $2; if (d < 0) d = -d; m = $1 > $2 ? $1 : $2; if (m > 0 && d / m > worst) worst = d / m; n += NF == 2 && $0 !~ /[^-+0-9.e\t]/ }
    END { printf "VALUE %ssteps %d\nVALUE %slargest_difference %.3g\n", prefix, n, prefix, worst
      if (n > 0 && n == NR && worst <= limit) exit 0
      print "losses differ: " n " pairs in " NR " lines, the largest difference " worst " of " limit; exit 1 }'
}
same_bits() {
  if cmp -s "$1" "$2"; then
    value same_bits 1
  else
    value same_bits 0
    echo "losses differ in their bits: $1 and $2"
    return 1
  fi
}
# train FOLDER OPTION ...: resnet20 on images made in memory, one record a step. $launcher: mpirun and its options.
train() {
  local folder=$1
  shift
  # shellcheck disable=SC2086
  ${launcher:-} convoy train --model resnet20 --synthetic --synthetic-samples 512 --synthetic-size 32 --batch-size "$small" \
    --lr 0.05 --seed 3 --sync gradients --print-freq 1 --skip-eval --no-tensorboard --device "$device" --output-dir "$folder" "$@"
}
seconds_since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f\n", b - a }'; }
json_value() { sed -nE "s/.*\"$1\": ([-+0-9.e]+).*/\1/p" | tail -n 1; } # KEY: of the peer's last line
# peak FILE COMMAND ...: runs it and writes the largest use of the GPU, MB, to FILE.
peak() {
  local file=$1 sampler rc
  shift
  (while nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits; do sleep 0.3; done) >"$file.samples" 2>/dev/null &
  sampler=$!
  "$@"
  rc=$?
  kill "$sampler" 2>/dev/null
  sort -n "$file.samples" | tail -n 1 >"$file"
  return $rc
}
memory() { [ ! -s "$2" ] || value "$1" "$(cat "$2")"; } # KEY FILE of peak

# --- first half
step_golden() { "$tests/parity.golden" ${rehearse:+--gtest_filter=*lenet*}; }
step_operations() { "$tests/parity.operations$suffix" ${rehearse:+--gtest_filter=*Pool*_fp32}; }
step_programs() { "$tests/parity.program$suffix" ${rehearse:+--gtest_list_tests}; }
# Roundings differ, and grow from step to step: 20 steps at a small rate.
step_curve() {
  train "$out/curve.gpu" --max-steps 20 --precision fp32 --no-checkpoints || return
  device=cpu train "$out/curve.cpu" --max-steps 20 --precision fp32 --no-checkpoints || return
  train "$out/curve.low" --max-steps 20 --precision "$fp16" --no-checkpoints || return
  for name in gpu cpu low; do losses "$out/curve.$name" >"$out/curve.$name.txt"; done
  compare "$out/curve.gpu.txt" "$out/curve.cpu.txt" 0.01 fp32_ && compare "$out/curve.low.txt" "$out/curve.cpu.txt" 0.05 fp16_
}
step_resume() {
  train "$out/whole" --max-steps 12 || return
  train "$out/parts" --max-steps 6 || return
  train "$out/parts" --resume auto --max-steps 6 || return
  for name in whole parts; do losses "$out/$name" >"$out/$name.txt"; done
  compare "$out/whole.txt" "$out/parts.txt" 0.001 || return
  same_bits "$out/whole.txt" "$out/parts.txt"
}
# Two replicas on one rank, and on two that share the GPU.
step_two_ranks() {
  local common=(--max-steps 8 --reproducible --check-weights 1 --no-checkpoints)
  train "$out/one" --replicas 2 "${common[@]}" || return
  launcher='mpirun --bind-to none -np 2' train "$out/two" --backend mpi "${common[@]}" || return
  for name in one two; do losses "$out/$name" >"$out/$name.txt"; done
  compare "$out/one.txt" "$out/two.txt" 0.001 || return
  same_bits "$out/one.txt" "$out/two.txt" || return
  mpirun --bind-to none -np 2 convoy bench comm --device "$device" --backend mpi --megabytes 4 --steps 5
}
step_nccl() {
  [ -z "$rehearse" ] || leave "NCCL needs a GPU"
  convoy bench comm --device "$device" --backend nccl --megabytes 100 --steps 5 &&
    convoy bench comm --device "$device" --backend nccl --reproducible --megabytes 4 --steps 5 &&
    CONVOY_NCCL_ALONE=1 train "$out/nccl" --max-steps 4 --backend nccl --no-checkpoints &&
    CONVOY_NCCL_ALONE=1 train "$out/nccl_tree" --max-steps 4 --backend nccl --reproducible --no-checkpoints
}
step_launches() {
  convoy bench compute --device "$device" --model resnet20 --batch-size "$small" --precision "$fp16" --steps "$steps" |
    tee "$out/launches.txt" || return
  [ -z "$rehearse" ] || return 0
  local launches allocations
  launches=$(sed -nE 's/.*graph launches: ([0-9.]+) a step.*/\1/p' "$out/launches.txt")
  allocations=$(sed -nE 's/.*allocations in the timed steps: ([0-9]+).*/\1/p' "$out/launches.txt")
  value graph_launches_a_step "${launches:-none}"
  value allocations "${allocations:-none}"
  awk -v l="${launches:-9}" -v a="${allocations:-9}" 'BEGIN { exit !(l <= 1 && a == 0) }'
}

# --- second half
ours() { # MODEL BATCH OPTION ...: adds to MODEL.txt
  local model=$1 batch=$2
  shift 2
  convoy bench compute --device "$device" --precision "$fp16" --batch-size "$batch" --steps "$steps" "$@" | tee -a "$out/$model.txt"
}
theirs() { # MODEL BATCH [--compile]
  "$python" "$peers/step_torch.py" --device "$device" --precision "$fp16" --steps "$steps" --model "$1" --batch-size "$2" "${@:3}"
}
# throughput MODEL BATCH OPTION ...: ours, the peer eager, ours, the peer compiled, ours. Of ours the median counts.
throughput() {
  local model=$1 batch=$2 middle peer
  peak "$out/$model.memory" ours "$@" || return
  if [ -n "$has_torch" ]; then
    peak "$out/$model.torch_memory" theirs "$model" "$batch" >"$out/$model.eager" || return
    ours "$@" || return
    [ -n "$rehearse" ] || theirs "$model" "$batch" --compile >"$out/$model.compiled" || return
  fi
  ours "$@" || return
  middle=$(sed -nE 's/^images\/s: ([0-9.]+) in all.*/\1/p' "$out/$model.txt" | sort -n |
    awk '{ v[NR] = $1 } END { if (NR > 0) print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }')
  [ -n "$middle" ] || return
  value images_per_second "$middle"
  memory memory_mb "$out/$model.memory"
  for variant in eager compiled; do
    [ -e "$out/$model.$variant" ] || continue
    peer=$(json_value images_per_second <"$out/$model.$variant")
    value "torch_$variant" "$peer"
    value "ratio_to_$variant" "$(awk -v a="$middle" -v b="$peer" 'BEGIN { printf "%.3f", a / b }')"
  done
  memory torch_memory_mb "$out/$model.torch_memory"
  [ -n "$has_torch" ] || echo "no PyTorch to compare with"
}
step_resnet50() { throughput resnet50 "$large" --model resnet50; }
step_resnet18() { throughput resnet18-small "$middle" --model resnet18 --stem small --classes 10; }
step_resnet20() { throughput resnet20 "$small" --model resnet20; }
step_to_94() {
  [ -n "$data" ] || leave "no --data"
  local begin=$EPOCHREALTIME
  convoy-preprocess cifar10 --source "$data" --out "$out/cifar10" || return
  value preparation_seconds "$(seconds_since "$begin")"
  begin=$EPOCHREALTIME
  convoy train --config "$here/configs/cifar10_resnet18_fast.cfg" --data "$out/cifar10" --device "$device" --precision "$fp16" \
    --no-tensorboard --no-checkpoints --output-dir "$out/to_94" ${rehearse:+--max-steps 2 --batch-size 4} || return
  value seconds_with_start "$(seconds_since "$begin")"
  value top1 "$(grep '"split":"val"' "$out/to_94/metrics.jsonl" | sed -E 's/.*"top1":([0-9.]+).*/\1/' | tail -n 1)"
  value training_seconds "$(grep '"split":"epoch"' "$out/to_94/metrics.jsonl" | sed -E 's/.*"seconds":([0-9.]+).*/\1/' |
    awk '{ s += $1 } END { printf "%.2f", s }')"
  { [ -n "$has_torch" ] && [ -z "$rehearse" ]; } || return 0
  "$python" "$peers/cifar10_torch.py" --data "$data" --device "$device" --model resnet18-small --precision "$fp16" --processes 1 \
    --batch-size 512 --epochs 20 --lr 0.8 --target 94 | tee "$out/to_94.torch" || return
  value torch_seconds "$(json_value seconds <"$out/to_94.torch")"
  value torch_top1 "$(json_value top1 <"$out/to_94.torch")"
}
# From the command to a finished first step, nothing compiled or cached by us.
step_cold_start() {
  local begin
  for _ in 1 2 3; do
    rm -rf "$out/cold"
    begin=$EPOCHREALTIME
    train "$out/cold" --max-steps 1 --precision "$fp16" --no-checkpoints || return
    seconds_since "$begin" >>"$out/cold.seconds"
  done
  value seconds "$(sort -n "$out/cold.seconds" | head -n 1)"
}
set +a

# --- running them
names=() results=() times=() notes=() values=() # values: `STEP KEY NUMBER`
note_of() { # RC LIMIT LOG
  case $1 in
    0) ;;
    124 | 137) echo "ended after its limit of $2 s" ;;
    *) grep -av '^$' "$3" | tail -n 1 | cut -c1-160 ;;
  esac
}
# step NAME LIMIT: runs step_NAME under its limit and what is left of the half. 77: left out, its last line says why.
step() {
  local name=$1 limit=$(($2 * patience)) left=$((290 * patience - SECONDS)) begin rc log=$out/$1.log result=failed
  [ -z "$only" ] || [[ $only == *,$name,* ]] || return 0
  [ "$limit" -le "$left" ] || limit=$left
  names+=("$name")
  if [ "$limit" -lt 3 ]; then
    results+=("left out") times+=(0) notes+=("the half's time is up")
    return 0
  fi
  begin=$EPOCHREALTIME
  timeout -k 5 "$limit" bash -uo pipefail -c "step_$name" >"$log" 2>&1
  rc=$?
  case $rc in
    0) result=ok ;;
    77) result="left out" ;;
  esac
  results+=("$result") times+=("$(seconds_since "$begin")") notes+=("$(note_of $rc "$limit" "$log")")
  while read -r _ key figure; do values+=("$name $key $figure"); done < <(grep -a '^VALUE [a-z0-9_]* ' "$log")
  printf '%-12s %-9s %7s s  %s\n' "$name" "$result" "${times[-1]}" "${notes[-1]}"
}

echo "gpu-check: $half half${rehearse:+, a rehearsal on the CPU}; $(convoy --version | head -n 1)"
if [ -z "$rehearse" ]; then
  card=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
  [ -n "$card" ] || { echo "gpu-check: nvidia-smi shows no GPU; use --rehearse to try the commands without one" >&2; exit 1; }
else
  card=none
fi
echo "card: $card"
if [ "$half" = first ]; then
  step golden 80
  step operations 80
  step curve 50
  step two_ranks 50
  step resume 40
  step nccl 30
  step programs 30
  step launches 20
else
  step to_94 150
  step resnet50 130
  step resnet18 60
  step resnet20 40
  step cold_start 20
fi

# --- the results
quoted() { printf '"%s"' "$(tr -d '\000-\037' <<<"$1" | sed 's/\\/\\\\/g; s/"/\\"/g')"; }
numeral() { if [[ $1 =~ ^-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$ ]]; then printf '%s' "$1"; else printf null; fi; }
rehearsal=false
[ -z "$rehearse" ] || rehearsal=true
{
  printf '{"half": "%s", "rehearsal": %s, "date": "%s", "card": %s,\n "program": %s,\n "steps": [' "$half" "$rehearsal" \
    "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$(quoted "$card")" "$(quoted "$(convoy --version | tr '\n' ';')")"
  for i in "${!names[@]}"; do
    [ "$i" -eq 0 ] || printf ','
    printf '\n  {"name": "%s", "result": "%s", "seconds": %s, "note": %s, "values": {' "${names[$i]}" "${results[$i]}" \
      "${times[$i]}" "$(quoted "${notes[$i]}")"
    separator=''
    for line in "${values[@]}"; do
      read -r name key figure <<<"$line"
      [ "$name" = "${names[$i]}" ] || continue
      printf '%s"%s": %s' "$separator" "$key" "$(numeral "$figure")"
      separator=', '
    done
    printf '}}'
  done
  printf '\n ]}\n'
} >"$out/results.json"
{
  printf '| step | result | seconds | values |\n| --- | --- | --- | --- |\n'
  for i in "${!names[@]}"; do
    row=''
    for line in "${values[@]}"; do
      read -r name key figure <<<"$line"
      [ "$name" != "${names[$i]}" ] || row+="${row:+, }$key $figure"
    done
    printf '| %s | %s%s | %s | %s |\n' "${names[$i]}" "${results[$i]}" "${notes[$i]:+: ${notes[$i]}}" "${times[$i]}" "$row"
  done
} >"$out/table.txt"
failed=0
for result in "${results[@]}"; do [ "$result" != failed ] || failed=$((failed + 1)); done
printf '\n'
cat "$out/table.txt"
echo "gpu-check: ${#results[@]} steps, $failed failed, $SECONDS s; $out/results.json"
[ "$failed" -eq 0 ] && [ ${#results[@]} -gt 0 ]
