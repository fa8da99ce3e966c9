#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/build.sh PRESET [CMAKE_OPTION ...] [-- TARGET ...]: configures build/PRESET and builds it, with ccache if there is one.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:?usage: scripts/build.sh PRESET [CMAKE_OPTION ...] [-- TARGET ...]}
shift
options=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
targets=("${@:2}")

if command -v ccache >/dev/null; then
  for language in CXX CUDA; do options+=("-DCMAKE_${language}_COMPILER_LAUNCHER=ccache"); done
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --preset "$preset" "${options[@]}" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
grep -A3 'CMake Warning' "$log" >&2 || true
if [ ${#targets[@]} -gt 0 ]; then targets=(--target "${targets[@]}"); fi
cmake --build "build/$preset" --parallel "$(nproc)" "${targets[@]}"
