#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A bundle in a root folder of its own: nothing but the bundle, a shell, /proc and a few devices; no C library where a program
# would look for it. There it makes data, trains on two ranks and evaluates, through its `run` and without; and says what is
# missing for a GPU. CONVOY_TEST_ROOT names another root folder, for instance that of an older system.
set -euo pipefail
# shellcheck source=/dev/null
. "$(dirname "$0")/root.sh"

if [ "${1:-}" != inside ]; then
  command -v unshare >/dev/null || { echo "unshare is missing"; exit 77; }
  command -v patchelf >/dev/null || { echo "patchelf is missing; run scripts/install-deps.sh" >&2; exit 1; }
  own=()
  [ "$(id -u)" = 0 ] || own=(--map-root-user)
  unshare "${own[@]}" --mount --pid --fork true || { echo "no namespaces here"; exit 77; }
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  "$CONVOY_SOURCE/scripts/bundle.sh" --build "$CONVOY_BUILD" --out "$folder/made/convoy" --fast
  bytes=$(stat -c %s "$folder/made/convoy.tar.xz")
  # The archive that is carried (-9) is a quarter smaller: 45 MB at this limit.
  [ "$bytes" -lt 60000000 ] || { echo "the archive has $bytes bytes" >&2; exit 1; }
  # As it will be used: unpacked elsewhere, moved, in a folder with a blank.
  mkdir -p "$folder/system/opt"
  tar -C "$folder/system/opt" -xf "$folder/made/convoy.tar.xz"
  mkdir "$folder/system/opt/a place"
  mv "$folder/system/opt/convoy" "$folder/system/opt/a place/moved"
  rm -rf "$folder/made"
  unshare "${own[@]}" --mount --pid --fork bash "$0" inside "$folder/system"
  exit
fi

# --- in namespaces of its own
root=$2
if [ -n "${CONVOY_TEST_ROOT:-}" ]; then
  mount --rbind "$root/opt" "$CONVOY_TEST_ROOT/opt"
  root=$CONVOY_TEST_ROOT
else
  make_root "$root"
fi
mount_root "$root"

there="/opt/a place/moved"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 HOME=/tmp
unset LD_LIBRARY_PATH CONVOY_MODULE_DIR PYTHONPATH
inside() { env PATH=/bin:/usr/bin /usr/sbin/chroot "$root" "$@"; }
fail() { echo "bundle: $*" >&2; exit 1; }

version=$(inside "$there/run" convoy --version)
[[ $version == *"MPI: Open MPI"* && $version == *oneDNN* ]] || fail "--version says: $version"
inside "$there/run" convoy-preprocess synthetic --out /tmp/data --partitions 3 --samples 2000 >/dev/null
inside "$there/run" convoy-preprocess verify /tmp/data >/dev/null

tiny=(train --config "$there/configs/tiny.cfg" --data /tmp/data --device cpu --threads 1 --epochs 2)
inside "$there/run" mpirun --oversubscribe --bind-to none -np 2 convoy "${tiny[@]}" --output-dir /tmp/two >"$root/tmp/two.txt" 2>&1 ||
  { cat "$root/tmp/two.txt" >&2; fail "two ranks do not train"; }
grep -q '"ranks":2' "$root/tmp/two/metrics.jsonl" || fail "there was no job of two ranks: $(head -1 "$root/tmp/two/metrics.jsonl")"
grep -q '"split":"val"' "$root/tmp/two/metrics.jsonl" || fail "nothing was evaluated"
noise=$(grep -aiE 'help-|mca|opal|pmix|unable|not find' "$root/tmp/two.txt" || true)
[ -z "$noise" ] || fail "Open MPI complains: $noise"
inside "$there/run" convoy evaluate /tmp/two --data /tmp/data --device cpu >"$root/tmp/evaluate.txt" 2>&1 || fail "$(cat "$root/tmp/evaluate.txt")"

# Started directly, as srun would, it finds its own Open MPI.
inside "$there/bin/convoy" "${tiny[@]}" --max-steps 2 --no-checkpoints --output-dir /tmp/one >"$root/tmp/one.txt" 2>&1 ||
  fail "without run: $(cat "$root/tmp/one.txt")"

# A test of the examination.
CONVOY_TEST_DEVICE=cpu CONVOY_GOLDEN_DIR="$there/tests/golden" inside "$there/tests/parity.golden" --gtest_filter='*lenet*' \
  >"$root/tmp/golden.txt" 2>&1 || fail "$(cat "$root/tmp/golden.txt")"

if [ -e "$root$there/lib/convoy/libconvoy_cuda.so" ] && [ ! -e /dev/nvidiactl ]; then
  code=0
  text=$(inside "$there/run" convoy bench comm --device cuda 2>&1) || code=$?
  [[ $code = 4 && $text == *"no NVIDIA driver"* ]] || fail "--device cuda: $code, $text"
  # All that it will lack where there is a driver.
  for module in "cuda libcudnn.so.9" "nccl libnccl.so.2"; do
    while read -r name; do
      [ "$name" != "${module#* }" ] || continue
      [ -e "$root$there/lib/$name" ] || [ -e "$root$there/libc/$name" ] || fail "libconvoy_${module% *}.so needs $name, which is not carried"
    done < <(patchelf --print-needed "$root$there/lib/convoy/libconvoy_${module% *}.so")
  done
fi
echo "bundle: works"
