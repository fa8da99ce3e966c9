# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A root folder that holds a shell, the tools that are named, /proc and a few devices; no C library where a program would look
# for one.

# add_tool ROOT FILE [NAME]: with its libraries, out of the way of other programs.
add_tool() {
  local root=$1 to=$1/bin/${3:-${2##*/}} library
  cp -L "$2" "$to"
  while read -r library; do
    [ -e "$root/shell/${library##*/}" ] || cp -L "$library" "$root/shell/"
  done < <(ldd "$2" | grep -oE '/[^ ]+')
  patchelf --set-interpreter /shell/ld-linux-x86-64.so.2 --force-rpath --set-rpath /shell "$to"
}

# make_root ROOT [TOOL ...]
make_root() {
  local root=$1 tool
  mkdir -p "$root"/{bin,usr,shell,proc,sys,dev/shm,tmp,etc}
  ln -s ../bin "$root/usr/bin"
  ln -s /proc/self/fd "$root/dev/fd"
  add_tool "$root" /bin/dash sh
  for tool in "${@:2}"; do add_tool "$root" "$(readlink -f "$(type -P "$tool")")" "$tool"; done
  printf 'root:x:0:0:root:/tmp:/bin/sh\n' >"$root/etc/passwd"
  printf '127.0.0.1 localhost %s\n' "$(hostname)" >"$root/etc/hosts"
}

# mount_root ROOT: in namespaces of its own.
mount_root() {
  local root=$1 device
  mount -t proc proc "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc"
  mount --rbind /sys "$root/sys"
  for device in null zero urandom random; do
    [ -e "$root/dev/$device" ] || : >"$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
  done
  mount -t tmpfs tmpfs "$root/dev/shm"
  mount -t tmpfs tmpfs "$root/tmp"
}
