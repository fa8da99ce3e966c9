# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# The steps of scripts/gpu-exam.sh, one function each, in a shell that it starts under the step's limit. They work in $work,
# and leave in $kept what the archive keeps. Descriptor 3 leads to what prints and packs: a value goes there when it is known.

leave() { echo "$*"; exit 77; }
value() { echo "VALUE $*" >&3; echo "VALUE $*"; } # KEY NUMBER
fact() { echo "FACT $*" >&3; echo "FACT $*"; }    # KEY TEXT
note_failed() { echo "FAILED $*" >&3; }
seconds_since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f\n", b - a }'; }
divide() { awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.3f", a / b; else print "none" }'; }
median() { sort -n | awk '{ v[NR] = $1 } END { if (NR > 0) printf "%.6g\n", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1
export CONVOY_GOLDEN_DIR=$golden CONVOY_REQUIRE_GPU=1 CONVOY_TEST_DEVICE=cuda
steps=40 small=128 networks="resnet50 resnet18 resnet20" turns="1 2"
tuned="resnet20 resnet50 resnet18" # small ones first: they take the least time
cores=$(env -u OMP_NUM_THREADS nproc)
if [ -n "$rehearse" ]; then
  steps=2 small=4 networks=resnet20 tuned=resnet20 turns=1
  export OMP_NUM_THREADS=1
fi

# network NAME: its options, with the batch of docs/cuda.md.
network() {
  if [ -n "$rehearse" ]; then
    case $1 in
      resnet50) echo "--model resnet11_bottleneck --resnet-version v1.5 --classes 10 --image-size 8 --batch-size 4" ;;
      *) echo "--model resnet8 --image-size 8 --batch-size 4" ;;
    esac
    return
  fi
  case $1 in
    resnet50) echo "--model resnet50 --batch-size 256" ;;
    resnet18) echo "--model resnet18 --stem small --classes 10 --image-size 32 --batch-size 512" ;;
    resnet20) echo "--model resnet20 --batch-size 128" ;;
  esac
}
# losses FOLDER: of the training steps, one per line, in order.
losses() { grep '"split":"train"' "$1/metrics.jsonl" | sed -E 's/.*"loss":([^,}]+).*/\1/'; }
# compare A B LIMIT [PREFIX]: the largest difference of two columns relative to the larger; fails above LIMIT, on unlike
# lengths, or where one is no number (null: not finite).
compare() {
  local result
  result=$(paste "$1" "$2" | awk -v limit="$3" '
    { d = $1 - $2; if (d < 0) d = -d; m = $1 > $2 ? $1 : $2; if (m > 0 && d / m > worst) worst = d / m; n += NF == 2 && $0 !~ /[^-+0-9.e\t]/ }
    END { printf "%d %d %.3g %d\n", n, NR, worst, (n != 0 && n == NR && worst <= limit) }')
  read -r pairs lines worst good <<<"$result"
  value "${4:-}steps" "$pairs"
  value "${4:-}largest_difference" "$worst"
  [ "$good" = 1 ] && return
  echo "losses differ: $pairs pairs in $lines lines, the largest difference $worst of $3"
  return 1
}
# same_bits KEY RUN RUN: of all tensors of their newest checkpoints. (Logged losses are sums over ranks, in the ranks' order.)
same_bits() {
  convoy diff "$2" "$3" | tee "$kept/$label.$1.txt"
  if grep -q 'have the same bits$' "$kept/$label.$1.txt"; then
    value "$1" 1
  else
    value "$1" 0
    echo "tensors differ in their bits: $(basename "$2") and $(basename "$3")"
    return 1
  fi
}
# train FOLDER OPTION ...: resnet20 on images made in memory, one record per step. $launcher: mpirun and its options; $device.
launcher='' device=cuda
train() {
  local folder=$1 rc
  shift
  rm -rf "$folder"
  go_on "$folder" "$@"
}
go_on() {
  local folder=$1
  shift
  # shellcheck disable=SC2086,SC2046
  ${launcher:-} convoy train --model "$([ -z "$rehearse" ] && echo resnet20 || echo resnet8)" --synthetic --synthetic-samples $((4 * small)) \
    --synthetic-size $([ -z "$rehearse" ] && echo 32 || echo 8) --batch-size "$small" --lr 0.05 --seed 3 --sync gradients --print-freq 1 \
    --skip-eval --no-tensorboard --device "$device" --output-dir "$folder" "$@"
  rc=$?
  if [ -e "$folder/metrics.jsonl" ]; then cp "$folder/metrics.jsonl" "$kept/$label.$(basename "$folder").jsonl"; fi
  return $rc
}
# bench NETWORK OPTION ...: steps of a network, in bench.txt.
bench() {
  local net=$1
  shift
  # shellcheck disable=SC2046
  convoy bench compute --device cuda --precision fp16 $(network "$net") --steps "$steps" "$@" >"$work/bench.txt" 2>&1
  local rc=$?
  cat "$work/bench.txt"
  return $rc
}
rate() { sed -nE 's/^images\/s: ([0-9.]+) in all.*/\1/p' "$work/bench.txt"; }
json_value() { sed -nE "s/.*\"$1\": ([-+0-9.e]+).*/\1/p" | tail -n 1; } # KEY: of the peer's last line
# peak FILE COMMAND ...: runs it and writes the largest use of the GPU, MB, to FILE.
peak() {
  local file=$1 sampler rc
  shift
  (while nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits; do sleep 0.2; done) >"$file.samples" 2>/dev/null 3>&- &
  sampler=$!
  "$@"
  rc=$?
  kill "$sampler" 2>/dev/null
  sort -n "$file.samples" | tail -n 1 >"$file"
  return $rc
}
# ours NETWORK KEY OPTION ...: a rate of ours, one more for `middle NETWORK`.
ours() {
  bench "$1" "${@:3}" || return
  rate >>"$work/ours.$1"
  value "$2" "$(rate)"
}
middle() { median <"$work/ours.$1"; }

# --- A
step_facts() {
  local folder file
  fact card "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | head -n 1)"
  fact cpu "$cores x $(sed -nE 's/^model name\s*: //p' /proc/cpuinfo | head -n 1)"
  fact memory_gb "$(awk '/^MemTotal/ { printf "%.0f", $2 / 1e6 }' /proc/meminfo)"
  fact system "$(uname -sr), $(getconf GNU_LIBC_VERSION 2>/dev/null)"
  convoy --version
  nvidia-smi -q >"$kept/nvidia-smi.txt"
  nvidia-smi topo -m
  for folder in $(tr : " " <<<"${LD_LIBRARY_PATH:-}"); do
    for file in "$folder"/lib{cudart,cudnn,nccl,nvrtc,cublas}.so.*; do [ ! -e "$file" ] || { echo "$file"; ls -lL "$file"; }; done
    # The first start need not wait for the disk while the others are measured.
    cat "$folder"/lib{cudnn,nccl}*.so.* >/dev/null 2>&1 3>&- &
  done
  for name in convoy_cuda convoy_nccl; do
    file=$here/lib/convoy/lib$name.so
    [ ! -e "$file" ] || ldd "$file" 2>/dev/null
  done
  fact tools "$(for tool in python3 mpirun compute-sanitizer cuda-gdb nvcc gcc xz; do command -v "$tool" >/dev/null && echo "$tool"; done | paste -sd ' ')"
}
# plan NETWORK KEY: writes down what the card computes, and compares its counts with those of the committed plan KEY.
plan() {
  local found wanted same
  # shellcheck disable=SC2046
  convoy inspect plan --device cuda --precision fp16 $(network "$1") >"$kept/plan.$1.txt" || return
  found=$(sed -nE 's/^(.*: )?([0-9]+ (convolutions:|cuDNN graphs,) .*)/\2/p' "$kept/plan.$1.txt" | tr -cs '0-9.\n' ' ' | sed 's/^ //' | paste -sd ' ' |
    awk '{ for (i = 1; i <= 10; ++i) printf "%s ", $i; printf "%.1f\n", $11 }')
  wanted=$(sed -n "s/^program: $2: //p" "$plans/h100.txt" | tr -cs '0-9.\n' ' ' | sed 's/^ //' |
    awk '{ for (i = 1; i <= 10; ++i) printf "%s ", $i; printf "%.1f\n", $11 }')
  same=0
  [ "$found" != "$wanted" ] || same=1
  fact "plan_$1" "$found"
  value "plan_$1_as_for_an_h100" $same
  [ $same = 1 ] || fact "plan_$1_for_an_h100" "${wanted:-none}"
}
step_smoke() {
  local name options scale count rc=0
  for name in "resnet20 fp32" "resnet20 fp16" "resnet50 fp16"; do
    options=''
    case $name in *fp16) scale="--loss-scale 1024" ;; *) scale='' ;; esac
    if [ "${name% *}" = resnet50 ]; then
      options="--model resnet50 --synthetic-size 224 --synthetic-samples 96 --batch-size 32"
      [ -z "$rehearse" ] || options="--model resnet11_bottleneck --resnet-version v1.5"
    fi
    # The first step runs as it is, the second is captured, the third replays it.
    # shellcheck disable=SC2086
    if train "$work/smoke" --precision "${name#* }" $scale --max-steps 3 --no-checkpoints $options; then
      count=$(losses "$work/smoke" | grep -cE '^[0-9.e+-]+$')
      value "${name/ /_}_finite_losses" "$count"
      [ "$count" = 3 ] || rc=1
    else
      note_failed "$name"
      rc=1
    fi
  done
  plan resnet50 "resnet50 fp16 n256 train" || rc=1
  plan resnet18 "resnet18 small stem fp16 n512 train" || rc=1
  plan resnet20 "cifar10_resnet20 fp16 n128 train" || rc=1
  return $rc
}
# shards KEY PROGRAM FILTER COUNT: a test's program in COUNT processes at once; failures are printed as they happen.
shards() {
  local i pids=()
  for ((i = 0; i < $4; ++i)); do
    (
      set -o pipefail
      GTEST_TOTAL_SHARDS=$4 GTEST_SHARD_INDEX=$i "$tests/$2" --gtest_filter="$3" 2>&1 | tee "$kept/$label.$1.$i.txt" |
        awk '/^\[  FAILED  \].*\([0-9]+ ms\)$/ { print "FAILED " $4; fflush() }' >&3
    ) &
    pids+=($!)
  done
  local bad=0 pid
  for pid in "${pids[@]}"; do wait "$pid" || bad=$((bad + 1)); done
  value "$1_passed" "$(cat "$kept/$label.$1".*.txt | grep -ac '^\[       OK \]')"
  value "$1_failed" "$(cat "$kept/$label.$1".*.txt | grep -acE '^\[  FAILED  \].*\([0-9]+ ms\)$')"
  # The log of a process that died ends with the test that it had begun.
  value "$1_processes_not_ok" $bad
  [ $bad = 0 ] && return
  grep -ahE '^\[ RUN      \]' "$kept/$label.$1".*.txt | awk '{ print $4 }' | sort >"$work/begun.$1"
  grep -ahE '^\[( {6} OK|  FAILED| {2}SKIPPED) +\]' "$kept/$label.$1".*.txt | awk '{ print $4 }' | sort >"$work/ended.$1"
  local name
  while read -r name; do note_failed "$name (never ended)"; done < <(comm -23 "$work/begun.$1" "$work/ended.$1")
  echo "$1: $bad processes did not end well"
  return 1
}
step_parity() {
  local many=8 golden_many=8 rc=0 first='*_fp16*' rest='-*_fp16*' golden='*'
  [ "$cores" -ge 8 ] || many=$cores
  if [ -n "$rehearse" ]; then many=2 golden_many=1 first='*Pool*_fp16*' rest='*Pool*_fp32*' golden='*PyTorch/mlp'; fi
  shards fp16 "parity.operations$suffix" "$first" "$many" || rc=1
  # The rest at once: one network takes as long as all operations.
  local pids=() pid
  shards others "parity.operations$suffix" "$rest" "$many" &
  pids+=($!)
  shards golden parity.golden "$golden" "$golden_many" &
  pids+=($!)
  if [ -z "$rehearse" ]; then
    shards program "parity.program$suffix" '*' 1 &
    pids+=($!)
  fi
  for pid in "${pids[@]}"; do wait "$pid" || rc=1; done
  return $rc
}
# The same step fused and not, from weights that some steps have moved: all gradients (after one step they are the momentum)
# and running statistics. Both ways round to 11 bits at some 160 places between the loss and the first layer, each in other
# ones: sqrt(160) 2^-11 = 0.6 %; a wrong mask, scale or join is off by a tenth and more.
step_fusion() {
  local way options worst rc=0 limit=0.05 deep="--model resnet50 --synthetic-size 224 --synthetic-samples 256 --batch-size 64"
  if [ -n "$rehearse" ]; then deep="--model resnet11_bottleneck --resnet-version v1.5 --synthetic-samples 32" limit=0.5; fi
  # shellcheck disable=SC2086
  train "$work/moved" $deep --precision fp16 --loss-scale 1024 --max-steps 8 --kernels no-fusion || return
  for way in unfused fused; do
    options=''
    [ $way = fused ] || options='--kernels no-fusion'
    # shellcheck disable=SC2086
    train "$work/$way" $deep --precision fp16 --loss-scale 1024 --max-steps 1 --weight-decay 0 --weights "$work/moved" $options || return
  done
  convoy diff --json "$work/unfused" "$work/fused" >"$kept/fusion.json" || return
  for way in optimiser statistics; do
    worst=$(awk -v kind="\"/$way/" '/"name": / { name = $2 } /"relative": / && index(name, kind) == 1 { n++; if ($2 > worst) { worst = $2; what = name } }
      END { gsub(/[",]/, "", what); printf "%d %.3g %s\n", n, worst, what }' "$kept/fusion.json")
    read -r n worst what <<<"$worst"
    [ $way = statistics ] || value gradients_that_differ "$n"
    value "${way/optimiser/gradients}_worst" "$worst"
    fact "${way/optimiser/gradients}_worst_of" "$what"
    awk -v w="$worst" -v l="$limit" 'BEGIN { exit !(w <= l) }' || { echo "$what: $worst of $limit between fused and not"; rc=1; }
  done
  value loss_difference "$(paste <(losses "$work/unfused") <(losses "$work/fused") | awk '{ d = $1 - $2; printf "%.3g", d < 0 ? -d / $1 : d / $1 }')"
  return $rc
}
# Rates, what a step launches and allocates, ceilings, and the table of the parts of a step.
step_speed() {
  local net rc=0 launches allocations
  for net in $networks; do
    ours "$net" "${net}_images_per_second" || { note_failed "$net"; rc=1; continue; }
    launches=$(sed -nE 's/.*graph launches: ([0-9.]+) per step.*/\1/p' "$work/bench.txt")
    allocations=$(sed -nE 's/.*allocations in the timed steps: ([0-9]+).*/\1/p' "$work/bench.txt")
    value "${net}_step_ms" "$(sed -nE 's/^step: mean ([0-9.]+) ms.*/\1/p' "$work/bench.txt")"
    value "${net}_graph_launches" "${launches:-none}"
    value "${net}_allocations" "${allocations:-none}"
    awk -v l="${launches:-9}" -v a="${allocations:-9}" 'BEGIN { exit !(l <= 1 && a == 0) }' || { echo "$net: a step launches or allocates more than once"; rc=1; }
    # shellcheck disable=SC2046
    convoy bench compute --device cuda --precision fp16 $(network "$net") --steps 10 --profile --csv "$kept/profile.$net.csv" >"$kept/profile.$net.txt" 2>&1 || { note_failed "profile of $net"; rc=1; continue; }
    sed -nE 's/.*roofline: ([0-9.]+) GFLOP.s.* ([0-9.]+) GB.s \(copy.*/\1 \2/p' "$kept/profile.$net.txt" >"$work/ceilings"
    read -r product copy <"$work/ceilings"
    value "${net}_product_gflops" "$product"
    value "${net}_copy_gb_per_second" "$copy"
    value "${net}_share_of_roofline" "$(awk '/  all parts$/ { sub(/%/, "", $7); print $7 }' "$kept/profile.$net.txt")"
    value "${net}_ms_outside_the_parts" "$(awk '/outside the parts/ { print $1 }' "$kept/profile.$net.txt")"
  done
  return $rc
}
# A run that goes on, and two replicas on one rank and on two that share the GPU: the same bits.
step_same_bits() {
  local rc=0 name common=(--max-steps 6 --reproducible --check-weights 1)
  train "$work/whole" --max-steps 6 || return
  train "$work/parts" --max-steps 3 || return
  go_on "$work/parts" --resume auto --max-steps 3 || return
  train "$work/one" --replicas 2 "${common[@]}" || return
  launcher='mpirun --bind-to none -np 2' train "$work/two" --backend mpi "${common[@]}" || return
  for name in whole parts one two; do losses "$work/$name" >"$work/$name.txt"; done
  compare "$work/whole.txt" "$work/parts.txt" 0.001 resume_ && same_bits resume_same_bits "$work/whole" "$work/parts" || rc=1
  compare "$work/one.txt" "$work/two.txt" 0.001 ranks_ && same_bits ranks_same_bits "$work/one" "$work/two" || rc=1
  [ -n "$rehearse" ] || mpirun --bind-to none -np 2 convoy bench comm --device cuda --backend mpi --megabytes 4 --steps 5 || rc=1
  return $rc
}
# Every kernel alone, then under each tool of the sanitizer, at once; and the kernels of three steps.
step_kernels() {
  local tool rc=0 pids=() i tools=(memcheck racecheck initcheck synccheck)
  if [ -x "$kernels" ]; then
    "$kernels" >"$kept/$label.alone.txt" 2>&1 || rc=1
    value passed "$(grep -ac '^\[       OK \]' "$kept/$label.alone.txt")"
    value failed_tests "$(grep -acE '^\[  FAILED  \].*\([0-9]+ ms\)$' "$kept/$label.alone.txt")"
    while read -r name; do note_failed "$name"; done < <(sed -nE 's/^\[  FAILED  \] (.*) \([0-9]+ ms\)$/\1/p' "$kept/$label.alone.txt")
  else
    fact alone "not in this build"
    tools=()
  fi
  command -v compute-sanitizer >/dev/null || { fact sanitizer "not on this machine"; return $rc; }
  # sanitized NAME PROGRAM OPTION ... -- WORD ...: in a bundle the program is started by a shell script, and where the sanitizer
  # can't follow that, by itself.
  sanitized() {
    local name=$1 program=$2 options=() errors='' way
    shift 2
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    for way in "$program" "$here/libexec/${program##*/}"; do
      [ -x "$way" ] || continue
      compute-sanitizer --target-processes all --print-limit 20 "${options[@]}" "$way" "$@" >"$kept/$label.$name.txt" 2>&1
      errors=$(sed -nE 's/.*(ERROR|RACECHECK) SUMMARY: ([0-9]+) .*/\2/p' "$kept/$label.$name.txt" | tail -n 1)
      [ -z "$errors" ] || break
    done
    value "${name}_errors" "${errors:-none}"
    [ "${errors:-1}" = 0 ]
  }
  for tool in "${tools[@]}"; do
    sanitized "$tool" "$kernels" --tool "$tool" -- &
    pids+=($!)
  done
  (
    sanitized program "$(command -v convoy)" --tool memcheck --kernel-regex kns=convoy -- train --model resnet8 --synthetic --synthetic-samples 24 --synthetic-size 16 --batch-size 8 --sync gradients \
      --precision fp16 --max-steps 3 --skip-eval --no-tensorboard --no-checkpoints --device cuda --output-dir "$work/sanitized"
  ) &
  pids+=($!)
  for i in "${!pids[@]}"; do wait "${pids[i]}" || { echo "the sanitizer found errors or did not end: ${tools[i]:-program}"; rc=1; }; done
  return $rc
}

# --- B
# From the command to a finished first step, nothing compiled or cached by us. The first comes from the disk.
step_start() {
  local i begin
  for i in 1 2 3; do
    begin=$EPOCHREALTIME
    train "$work/cold" --max-steps 1 --precision fp16 --no-checkpoints || return
    value "seconds_$i" "$(seconds_since "$begin")"
  done
}
step_memory() {
  local net rc=0
  for net in $networks; do
    peak "$work/memory.$net" bench "$net" || { note_failed "$net"; rc=1; }
    value "${net}_mb" "$(cat "$work/memory.$net")"
    value "${net}_graph_launches" "$(sed -nE 's/.*graph launches: ([0-9.]+) per step.*/\1/p' "$work/bench.txt")"
  done
  return $rc
}
# Kernels by rule and by measuring; by rule also small weight gradients in a row with the others, and early launches; in turns.
step_tuning() {
  local net turn way options rc=0
  train "$work/beside" --max-steps 4 --precision fp16 --loss-scale 1024 && train "$work/row" --max-steps 4 --precision fp16 --loss-scale 1024 --kernels one-stream &&
    same_bits one_stream_same_bits "$work/beside" "$work/row" || rc=1
  CONVOY_EARLY_LAUNCH=1 train "$work/early" --max-steps 4 --precision fp16 --loss-scale 1024 && same_bits early_launch_same_bits "$work/beside" "$work/early" || rc=1
  for net in $tuned; do
    for turn in $turns; do
      for way in rule measured row early; do
        case $way in row) options='--kernels one-stream' ;; early) options='' ;; *) options="--tuning $way" ;; esac
        # shellcheck disable=SC2086
        CONVOY_EARLY_LAUNCH=$([ $way = early ] && echo 1) bench "$net" $options || { note_failed "$net $way"; rc=1; continue; }
        rate >>"$work/tuning.$net.$way"
        value "${net}_${way}_$turn" "$(rate)"
      done
    done
    for way in measured row early; do
      value "${net}_${way}_to_rule" "$(divide "$(median <"$work/tuning.$net.$way")" "$(median <"$work/tuning.$net.rule")")"
    done
    # shellcheck disable=SC2046
    convoy inspect plan --device cuda --precision fp16 --tuning measured $(network "$net") >"$kept/plan.$net.measured.txt" || rc=1
  done
  return $rc
}
step_to_94() {
  [ -n "$data" ] || leave "no --data"
  local begin=$EPOCHREALTIME folder=$work/to_94 config=cifar10_resnet18_fast
  [ -z "$rehearse" ] || config=tiny
  rm -rf "$folder" "$work/cifar10"
  if [ -d "$data" ]; then
    convoy-preprocess cifar10 --source "$data" --out "$work/cifar10" || return
  else
    convoy-preprocess folder --source "$data" --encoding raw --sizes 32 --out "$work/cifar10" || return
  fi
  value preparation_seconds "$(seconds_since "$begin")"
  begin=$EPOCHREALTIME
  # shellcheck disable=SC2046
  convoy train --config "$here/configs/$config.cfg" --data "$work/cifar10" --device cuda --precision fp16 --no-tensorboard \
    --no-checkpoints --output-dir "$folder" $([ -z "$rehearse" ] || echo --model resnet8 --max-steps 2 --batch-size 4 --image-size 8) &
  local trainer=$! told=0 row
  # Print an epoch's accuracy when it is known.
  while :; do
    local alive=1
    kill -0 $trainer 2>/dev/null || alive=''
    while read -r row; do
      told=$((told + 1))
      value "top1_of_epoch_$told" "$row"
    done < <(grep -s '"split":"val"' "$folder/metrics.jsonl" | sed -E 's/.*"top1":([0-9.]+).*/\1/' | tail -n +$((told + 1)))
    [ -n "$alive" ] || break
    sleep 0.3
  done
  wait $trainer || return
  cp "$folder/metrics.jsonl" "$kept/to_94.jsonl"
  value seconds_with_start "$(seconds_since "$begin")"
  value top1 "$(grep '"split":"val"' "$folder/metrics.jsonl" | sed -E 's/.*"top1":([0-9.]+).*/\1/' | tail -n 1)"
  value training_seconds "$(grep '"split":"epoch"' "$folder/metrics.jsonl" | sed -E 's/.*"seconds":([0-9.]+).*/\1/' | awk '{ s += $1 } END { printf "%.2f", s }')"
}
# Roundings differ, and grow from step to step: 20 steps at a small rate. The loss scale is fixed: a dynamic one skips the
# first steps, in which the weights then stay as they are.
step_curve() {
  local name rc=0 limit=0.02
  [ -z "$rehearse" ] || limit=1 # batches of 4
  train "$work/gpu" --max-steps 20 --precision fp32 --no-checkpoints || return
  train "$work/low" --max-steps 20 --precision fp16 --loss-scale 1024 --no-checkpoints || return
  device=cpu train "$work/cpu" --max-steps 20 --precision fp32 --no-checkpoints || return
  for name in gpu cpu low; do losses "$work/$name" >"$work/$name.txt"; done
  compare "$work/gpu.txt" "$work/cpu.txt" 0.01 fp32_ || rc=1
  compare "$work/low.txt" "$work/cpu.txt" $limit fp16_ || rc=1
  # Muon's matrix products are in fp32 on both.
  for name in cuda cpu; do
    device=$name train "$work/muon_$name" --max-steps 20 --precision fp32 --no-checkpoints --optimizer muon --lr 0.002 || return
    losses "$work/muon_$name" >"$work/muon_$name.txt"
  done
  compare "$work/muon_cuda.txt" "$work/muon_cpu.txt" 0.01 muon_ || rc=1
  for name in gpu muon_cuda; do
    value "${name}_seconds_per_step" "$(grep '"split":"train"' "$work/$name/metrics.jsonl" | sed -E 's/.*"step_time":([^,}]+).*/\1/' | median)"
  done
  return $rc
}
# One rank sums over itself, also in captured steps.
step_nccl() {
  local name sums rc=0
  for name in plain tree; do
    sums=()
    [ $name = plain ] || sums=(--reproducible)
    CONVOY_NCCL_ALONE=1 train "$work/nccl_$name" --max-steps 4 --backend nccl "${sums[@]}" || { note_failed "$name"; rc=1; continue; }
    value "${name}_steps" "$(losses "$work/nccl_$name" | wc -l)"
  done
  train "$work/lone" --max-steps 4 || return
  same_bits same_bits_as_without "$work/lone" "$work/nccl_plain" || rc=1
  [ -n "$rehearse" ] || convoy bench comm --device cuda --backend nccl --megabytes 100 --steps 5 || rc=1
  return $rc
}

# --- C. Results and failures of PyTorch are printed; they fail no step.
step_ours() {
  local net rc=0
  for net in $networks; do ours "$net" "$net" || { note_failed "$net"; rc=1; }; done
  return $rc
}
step_torch() {
  local begin=$EPOCHREALTIME unpacker=''
  if [ -n "$data" ] && [ ! -d "$data" ]; then
    "$python" "$here/bench/cifar10_archive.py" unpack "$data" "$work/binary" 3>&- &
    unpacker=$!
  fi
  fact version "$("$python" -c 'import torch; print(torch.__version__, torch.version.cuda, torch.backends.cudnn.version())' 2>&1 | tail -n 1)"
  value import_seconds "$(seconds_since "$begin")"
  [ -z "$unpacker" ] || wait "$unpacker" || fact data "none: the archive can't be unpacked"
}
# theirs NETWORK KEY LIMIT OPTION ...
theirs() {
  local net=$1 key=$2 limit=$3 name batch rate
  shift 3
  case $net in
    resnet50) name=resnet50 batch=256 ;;
    resnet18) name=resnet18-small batch=512 ;;
    resnet20) name=resnet20 batch=128 ;;
  esac
  timeout --foreground -k 1 "$limit" "$python" "$here/bench/peer/step_torch.py" --device cuda --precision fp16 --steps "$steps" --model $name --batch-size $batch "$@" \
    >"$work/peer.txt" 2>"$kept/$key.errors.txt"
  local rc=$?
  cat "$work/peer.txt"
  rate=$(json_value images_per_second <"$work/peer.txt")
  if [ $rc = 0 ] && [ -n "$rate" ]; then
    value "$key" "$rate"
    rm -f "$kept/$key.errors.txt"
    return
  fi
  case $rc in
    124 | 137) fact "$key" "none: more than $limit s" ;;
    *) fact "$key" "none: $(tail -n 1 "$kept/$key.errors.txt" | cut -c1-120)" ;;
  esac
  return 1
}
beside() { # NETWORKS VARIANT LIMIT OPTION ...: a peer, then ours, for each network
  local variant=$2 limit=$3 net peer rc=0
  [ -z "$rehearse" ] || limit=2
  for net in $1; do
    peer=''
    if theirs "$net" "${net}_$variant" "$limit" "${@:4}"; then peer=$(json_value images_per_second <"$work/peer.txt"); fi
    ours "$net" "$net" || { note_failed "$net"; rc=1; continue; }
    [ -z "$peer" ] || value "${net}_ratio_to_$variant" "$(divide "$(middle "$net")" "$peer")"
  done
  return $rc
}
step_eager() { beside "$networks" eager 20; }
step_compiled_50() { beside resnet50 compiled 45 --compile; }
step_compiled_18() { beside resnet18 compiled 20 --compile; }
step_compiled_20() { beside resnet20 compiled 20 --compile; }
step_torch_to_94() {
  [ -n "$data" ] || leave "no --data"
  local folder=$data
  if [ ! -d "$data" ]; then
    folder=$work/binary # by the step torch
  fi
  "$python" "$here/bench/peer/cifar10_torch.py" --data "$folder" --device cuda --model resnet18-small --precision fp16 --processes 1 \
    --batch-size 512 --epochs 20 --lr 0.8 --target 94 >"$work/to_94.torch" &
  local peer=$! told=0 row
  while :; do
    local alive=1
    kill -0 $peer 2>/dev/null || alive=''
    while read -r row; do
      told=$((told + 1))
      value "top1_of_epoch_$told" "$(json_value top1 <<<"$row")"
      value "seconds_of_epoch_$told" "$(json_value seconds <<<"$row")"
    done < <(grep -s '"epoch":' "$work/to_94.torch" | tail -n +$((told + 1)))
    [ -n "$alive" ] || break
    sleep 0.3
  done
  wait $peer || { fact seconds "none: the peer failed"; return 0; }
  value seconds "$(json_value seconds <"$work/to_94.torch")"
  value top1 "$(json_value top1 <"$work/to_94.torch")"
}
