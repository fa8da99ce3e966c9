#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/fuzz.sh SECONDS [TARGET ...]: coverage-guided fuzzing (libFuzzer, clang 14, address and undefined sanitizers) of the readers
# of foreign bytes: partition, image, containers, tensors. Corpora stay in build/fuzz/corpus. Ends with 1 at the first finding.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?usage: scripts/fuzz.sh SECONDS [partition|image|containers|tensors ...]}
shift
targets=("${@}")
[ ${#targets[@]} -gt 0 ] || targets=(partition image containers tensors)
command -v clang++-14 >/dev/null || {
  echo "fuzz: clang++-14 is missing; scripts/install-deps.sh installs it" >&2
  exit 2
}
export CONVOY_PREPROCESS=${CONVOY_PREPROCESS:-build/release/preprocess/convoy-preprocess}
cmake -S tests/fuzz -B build/fuzz -G Ninja -DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14 >/dev/null
cmake --build build/fuzz --target "${targets[@]/%/_fuzz}"
for target in "${targets[@]}"; do
  seeds=build/fuzz/corpus/$target
  .venv/bin/python tests/fuzz/seeds.py "$target" "$seeds"
  # HDF5 and libfuzzer's parent keep memory on purpose.
  ASAN_OPTIONS=detect_leaks=0 "build/fuzz/${target}_fuzz" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 \
    -max_len=65536 -print_final_stats=1 -artifact_prefix="build/fuzz/$target-" "$seeds" 2>&1 | tee "build/fuzz/$target.log"
  grep -q 'inline 8-bit counters' "build/fuzz/$target.log" || {
    echo "fuzz: $target counts no coverage; it would find nothing" >&2
    exit 1
  }
done
