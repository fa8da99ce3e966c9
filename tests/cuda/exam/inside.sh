#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# inside.sh make ROOT: a root folder with the tools that every machine has. inside.sh run ROOT COMMAND ...: a command in it, in
# namespaces of its own, so that all that it started ends with it.
set -euo pipefail
# shellcheck source=/dev/null
. "$(dirname "$0")/../bundle/root.sh"
root=$2
case $1 in
  make)
    make_root "$root" awk bash basename cat comm cp cut date dirname env grep gzip head hostname id ls mkdir mktemp mv nproc paste ps \
      readlink rm sed sleep sort stat tail tar tee timeout touch tr uname wc
    ;;
  run)
    own=()
    [ "$(id -u)" = 0 ] || own=(--map-root-user)
    exec unshare "${own[@]}" --mount --pid --fork --kill-child bash "$0" namespaces "${@:2}"
    ;;
  namespaces)
    mount_root "$root"
    cd "$root/out"
    exec env -i PATH=/bin HOME=/tmp OMP_NUM_THREADS=1 /usr/sbin/chroot "$root" "${@:3}"
    ;;
esac
