#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a folder, and an archive of it, that runs on a machine that has none of our libraries: the programs, the tests that
# scripts/gpu-exam.sh needs, Open MPI with its plugins, and every shared library but CUDA's, the C library and its loader
# included: the machine's own may be older. The folder may be moved.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/bundle.sh [--build DIR] [--out DIR] [--fast] [--no-archive]
  --build DIR    of the programs and tests; default build/release
  --out DIR      the folder to make, replaced where it exists; default build/bundle/convoy
  --fast         a larger archive in a fifth of the time
  --no-archive   the folder only; else DIR.tar.xz is made beside it
The target needs x86-64, Linux 3.2 and a shell, and for GPUs an NVIDIA driver, cuDNN and NCCL (Python's packages will do).
Start everything there through the folder's `run`:  convoy/run convoy train ...   convoy/run mpirun -np 2 convoy train ...
TEXT
}

build=build/release folder=build/bundle/convoy level=-9 archive=1
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=${2:?}; shift ;;
    --out) folder=${2:?}; shift ;;
    --fast) level=-1 ;;
    --no-archive) archive='' ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

die() { echo "bundle: $*" >&2; exit 1; }
for tool in patchelf strip ldd xz ompi_info; do
  command -v "$tool" >/dev/null || die "$tool is missing; run scripts/install-deps.sh"
done
programs=("$build/src/cli/convoy" "$build/preprocess/convoy-preprocess")
# Of all backends: CONVOY_TEST_DEVICE chooses.
tests=(parity.operations.cpu parity.program.cpu parity.golden)
for file in "${programs[@]}" "${tests[@]/#/$build/tests/parity/}"; do
  [ -x "$file" ] || die "$file is missing; run scripts/build.sh release first"
done

rm -rf "$folder"
mkdir -p "$folder"/{bin,libexec,lib/convoy,lib/pmix,etc/openmpi,share/pmix,share/convoy,tests/golden,tests/plan,bench,configs,scripts,docs}
folder=$(cd "$folder" && pwd)

# --- ours
cp "${programs[@]}" "$folder/libexec/"
for name in "${tests[@]}"; do cp "$build/tests/parity/$name" "$folder/libexec/${name%.cpu}"; done
if [ -x "$build/tests/cuda/gpu.kernels" ]; then cp "$build/tests/cuda/gpu.kernels" "$folder/libexec/"; fi
for module in cuda nccl; do
  if [ -e "$build/src/cli/libconvoy_$module.so" ]; then cp "$build/src/cli/libconvoy_$module.so" "$folder/lib/convoy/"; fi
done
cp tests/golden/*.json "$folder/tests/golden/"
cp configs/*.cfg "$folder/configs/"
cp -r bench/peer bench/cifar10_archive.py "$folder/bench/"
cp scripts/gpu-exam.sh scripts/gpu-exam-steps.sh "$folder/scripts/"
grep '^program' tests/cuda/plan/expected/h100.txt >"$folder/tests/plan/h100.txt"
cp LICENSE "$folder/"
"$build/src/cli/convoy" --version >"$folder/share/convoy/bundle"

# --- Open MPI: launcher, daemon, texts, plugins. Those of network fabrics drag in their drivers' libraries.
path_of() { ompi_info --parsable --path "$1" | cut -d: -f3; }
prefix=$(path_of prefix)
plugins=$(path_of pkglibdir)
[ "${plugins#"$prefix"/}" != "$plugins" ] || die "Open MPI's plugins ($plugins) are not below its prefix ($prefix)"
plugin_folder=${plugins#"$prefix"/}
mkdir -p "$folder/$plugin_folder" "$folder/share/openmpi"
cp "$(command -v orterun)" "$(command -v orted)" "$folder/libexec/"
cp -rL "$(path_of pkgdatadir)"/*.txt "$folder/share/openmpi/"
cp -L "$(path_of sysconfdir)"/*.conf "$folder/etc/openmpi/"
for plugin in "$plugins"/mca_*.so; do
  case ${plugin##*/} in
    *ucx* | *ofi* | *openib* | *usnic* | *psm* | *_uct* | mca_pml_cm.so | mca_mtl_* | *memheap* | *scoll* | *spml* | *sshmem* | \
      mca_atomic_* | *monitoring* | *flux* | *romio* | *gridengine* | *simulator*) ;;
    *) cp "$plugin" "$folder/$plugin_folder/" ;;
  esac
done

# --- libraries: what all of these need, found as the loader finds it
libc='^(linux-vdso|ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libresolv|libutil|libanl|libnss_[a-z]*)\.so'
cuda='^lib(cuda|cudart|cudnn|nccl|nvrtc|cublas|nvJitLink)[A-Za-z_-]*\.so'
needs_of() { # FILE: `name path` lines; a library that is not found ends the work
  local lines
  lines=$(ldd "$1" 2>/dev/null | awk '$2 == "=>" { print $1, ($3 == "not" ? "missing" : $3) }')
  awk -v file="$1" -v libc="$libc" -v cuda="$cuda" '
    $1 ~ libc || $1 ~ cuda { next }
    $2 == "missing" { print "bundle: " file " needs " $1 ", which is not found" >"/dev/stderr"; exit 1 }
    { print }' <<<"$lines"
}
carry() { # FILE ...
  local file name path
  for file in "$@"; do
    while read -r name path; do
      if [ -n "$name" ] && [ ! -e "$folder/lib/$name" ]; then cp -L "$path" "$folder/lib/$name"; fi
    done < <(needs_of "$file")
  done
}
pmix=$(ldd "$plugins/mca_pmix_ext3x.so" 2>/dev/null | awk '/libpmix/ { print $3 }')
[ -n "$pmix" ] || die "libpmix of $plugins/mca_pmix_ext3x.so is not found"
pmix=$(dirname "$(readlink -f "$pmix")")
cp "$pmix"/pmix/*.so "$folder/lib/pmix/"
cp -r "$pmix"/../share/pmix/. "$folder/share/pmix/"
carry "$folder"/libexec/* "$folder"/lib/convoy/*.so "$folder/$plugin_folder"/*.so "$folder"/lib/pmix/*.so

# --- movable: every file finds the others from its own place
strip --strip-unneeded "$folder"/libexec/* "$folder"/lib/*.so* "$folder"/lib/convoy/*.so 2>/dev/null || true
up=''
for _ in ${plugin_folder//\// }; do up+=../; done # from the plugins to the folder
patchelf --set-rpath "\$ORIGIN/../lib" "$folder"/libexec/*
patchelf --set-rpath "\$ORIGIN" "$folder"/lib/*.so*
for file in "$folder"/lib/convoy/*.so "$folder"/lib/pmix/*.so; do patchelf --set-rpath "\$ORIGIN/.." "$file"; done
patchelf --set-rpath "\$ORIGIN/${up}lib" "$folder/$plugin_folder"/*.so

# --- the C library and its loader, as they are. Not in lib: Open MPI puts that into the environment of what it starts, and
# the machine's shell, which starts the wrappers below, can't take another C library than its own loader's.
mkdir "$folder/libc"
here=$(ldd "$folder/libexec/orted" | awk '$1 == "libc.so.6" { print $3 }')
[ -n "$here" ] || die "the C library of $folder/libexec/orted is not found"
here=$(dirname "$here")
for name in ld-linux-x86-64.so.2 lib{c,m,dl,rt,pthread,resolv,util,anl,nss_files,nss_dns,nss_compat}.so.*; do
  for file in "$here"/$name; do
    if [ -e "$file" ]; then cp -L "$file" "$folder/libc/"; fi
  done
done

# --- what starts them
# Programs that are started by their own names: a loader can't be named by a path that moves with them. The path it is
# given holds for one process, not for those that it starts.
for file in "$folder"/libexec/*; do
  name=${file##*/}
  case $name in parity.* | gpu.*) place=tests ;; *) place=bin ;; esac
  cat >"$folder/$place/$name" <<RUN
#!/bin/sh
# $name, with the loader and the C library of this folder.
self=\$0
case \$self in */*) ;; *) self=\$(command -v "\$self") ;; esac
if [ -L "\$self" ]; then self=\$(readlink -f "\$self"); fi
here=\$(cd "\${self%/*}/.." && pwd) || exit
exec "\$here/libc/ld-linux-x86-64.so.2" --library-path "\$here/libc:\$here/lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" "\$here/libexec/$name" "\$@"
RUN
  chmod +x "$folder/$place/$name"
done
cat >"$folder/run" <<'RUN'
#!/bin/sh
# run COMMAND [ARGUMENT ...]: a command with this folder's programs first on the PATH, its Open MPI, and CUDA's libraries.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
here=$(cd "$here" && pwd) || exit
PATH=$here/bin:$PATH
export PATH OPAL_PREFIX="$here" OPAL_SYSCONFDIR="$here/etc/openmpi" PMIX_PKGLIBDIR="$here/lib/pmix" \
  PMIX_PKGDATADIR="$here/share/pmix" CONVOY_BUNDLE="$here"
# Without ssh mpirun would not even start on one machine.
command -v ssh >/dev/null 2>&1 || command -v rsh >/dev/null 2>&1 || export OMPI_MCA_plm_rsh_agent=
# cuDNN and NCCL: where the user says, else those of Python's packages (CONVOY_PYTHON names another interpreter), else the toolkit's.
found=$("${CONVOY_PYTHON:-python3}" -c '
import glob
try:
    import nvidia
    print(":".join(folder for path in nvidia.__path__ for folder in sorted(glob.glob(path + "/*/lib"))))
except ImportError:
    pass' 2>/dev/null)
for folder in /usr/local/cuda/lib64 /usr/local/nvidia/lib64; do
  [ -d "$folder" ] && found=${found:+$found:}$folder
done
[ -z "$found" ] || export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$found"
[ $# -gt 0 ] || { echo "usage: $0 COMMAND [ARGUMENT ...]" >&2; exit 2; }
exec "$@"
RUN
cat >"$folder/bin/mpirun" <<'RUN'
#!/bin/sh
case $0 in */*) here=${0%/*} ;; *) here=$(command -v "$0"); here=${here%/*} ;; esac
here=$(cd "$here/.." && pwd) || exit
export OPAL_PREFIX="$here" OPAL_SYSCONFDIR="$here/etc/openmpi" PMIX_PKGLIBDIR="$here/lib/pmix" PMIX_PKGDATADIR="$here/share/pmix"
exec "$here/bin/orterun" "$@"
RUN
chmod +x "$folder/run" "$folder/bin/mpirun"

echo "bundle: $folder, $(du -sm "$folder" | cut -f1) MB, $(find "$folder/lib" -maxdepth 1 -name '*.so*' | wc -l) libraries"
[ -n "$archive" ] || exit 0
tar -C "$(dirname "$folder")" -cf - "$(basename "$folder")" | xz -T0 "$level" >"$folder.tar.xz"
bytes=$(stat -c %s "$folder.tar.xz")
echo "bundle: $folder.tar.xz, $(((bytes + 999999) / 1000000)) MB"
[ "$level" != -9 ] || [ "$bytes" -le 40000000 ] || die "the archive is larger than 40 MB; leave out tests or oneDNN"
