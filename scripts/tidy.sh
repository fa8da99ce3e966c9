#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy on the sources that changed in the last day, newest first, within a time limit (a file takes 2 to 18 s).
set -euo pipefail
cd "$(dirname "$0")/.."

limit=${TIDY_SECONDS:-40}
database=build/release
if [ "${1:-}" = --all ]; then
  mapfile -t files < <(git ls-files -- 'src/*.cpp' 'preprocess/*.cpp' 'tests/*.cpp')
else
  mapfile -t files < <(
    {
      git diff --name-only HEAD
      git ls-files --others --exclude-standard
      git log --since='1 day ago' --format= --name-only
      git show --format= --name-only HEAD
    } | awk '/\.cpp$/ && !seen[$0]++'
  )
fi
[ -e "$database/compile_commands.json" ] || { echo "tidy: run scripts/test.sh first, it makes $database" >&2; exit 2; }

# Only what the build compiles has a command to check it by.
compiled=()
for file in "${files[@]}"; do
  if [ -e "$file" ] && grep -qF "/$file\"" "$database/compile_commands.json"; then compiled+=("$file"); fi
done

check() { # FILE: prints only what clang-tidy finds
  local log
  if ! log=$(clang-tidy-14 --quiet -p "$database" "$1" 2>/dev/null); then
    printf '%s\n' "$log"
    return 1
  fi
}

result=0 left=() running=()
for file in "${compiled[@]}"; do
  if [ "$SECONDS" -ge "$limit" ]; then left+=("$file"); continue; fi
  if [ ${#running[@]} -ge 2 ]; then
    wait "${running[0]}" || result=1
    running=("${running[@]:1}")
  fi
  check "$file" &
  running+=($!)
done
for process in "${running[@]}"; do wait "$process" || result=1; done

echo "tidy: $((${#compiled[@]} - ${#left[@]})) of ${#compiled[@]} changed files checked in $SECONDS s"
if [ ${#left[@]} -gt 0 ]; then printf 'tidy: not checked, time is up: %s\n' "${left[*]}"; fi
exit $result
