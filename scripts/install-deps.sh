#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the build and the tests need and is not there yet: Debian packages, and in .venv what only PyPI has.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/install-deps.sh [--build-only] [--no-cuda] [--dry-run]
  --build-only  only what building and running the two programs needs; no test tools
  --no-cuda     nothing for the CUDA module
  --dry-run     say what would be installed, change nothing
Where nothing is missing nothing is done and no right is asked for; otherwise it runs apt-get as root (sudo) without asking
again. The services of packages that only the tests need (nginx, slurmctld, slurmd, munge) are neither started nor left
enabled for the next boot, unless they were there before. On systems other than Debian 12 it prints the
packages by their names there and exits with 2.
TEXT
}

build_only='' cuda=1 dry_run=''
for argument in "$@"; do
  case $argument in
    --build-only) build_only=1 ;;
    --no-cuda) cuda='' ;;
    --dry-run) dry_run=1 ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done

build_packages=(
  cmake ninja-build g++ openmpi-bin libopenmpi-dev libhdf5-dev libdnnl-dev libeigen3-dev libboost-program-options-dev
  libfmt-dev nlohmann-json3-dev libprotobuf-dev protobuf-compiler libisal-dev zlib1g-dev
  libjpeg62-turbo-dev libpng-dev libwebp-dev libarchive-dev libcurl4-openssl-dev libhwloc-dev
  ccache # here, so that the tests find what quickstart.sh built
)
test_packages=(
  libgtest-dev libgmock-dev python3-venv clang-format-14 clang-tidy-14 clang-14 libclang-rt-14-dev shellcheck git
  nginx-light
  patchelf xz-utils # scripts/bundle.sh
  # A real Slurm for tests/slurm; srun's PMIx opens libpmix.so, which only the -dev package has.
  slurmctld slurmd slurm-client slurm-wlm-basic-plugins slurm-wlm-torque munge libpmix-dev iproute2
)
# Daemons of these packages, which tests start by themselves in places of their own.
test_services=(nginx slurmctld slurmd munge)
# Of the tests only. NAME or NAME:FOLDER where the folder in site-packages has another name.
python_packages=(h5py numpy tensorboard pillow:PIL 'moto[server]:moto')

print_other_names() {
  cat <<'TEXT'
This is not Debian 12: install these yourself (the test tools are optional), then use --no-install with the scripts.

Ubuntu 22.04, 24.04   the names of Debian: see build_packages in scripts/install-deps.sh; apt-get install them
Fedora, RHEL + EPEL   cmake ninja-build gcc-c++ openmpi-devel hdf5-devel onednn-devel eigen3-devel boost-devel
                      fmt-devel json-devel protobuf-devel isa-l-devel zlib-devel libjpeg-turbo-devel libpng-devel
                      libwebp-devel libarchive-devel libcurl-devel hwloc-devel; module load mpi/openmpi-x86_64
                      tests: gtest-devel gmock-devel ccache python3 clang-tools-extra ShellCheck nginx patchelf xz
openSUSE, SLES        cmake ninja gcc-c++ openmpi4-devel hdf5-devel onednn-devel eigen3-devel
                      libboost_program_options-devel fmt-devel nlohmann_json-devel protobuf-devel isa-l-devel
                      zlib-devel libjpeg8-devel libpng16-devel libwebp-devel libarchive-devel libcurl-devel hwloc-devel
                      tests: gtest gmock ccache python3 clang-tools ShellCheck nginx patchelf xz
Spack                 cmake ninja openmpi hdf5~mpi+threadsafe onednn eigen boost+program_options fmt nlohmann-json
                      protobuf isa-l zlib libjpeg-turbo libpng libwebp libarchive curl hwloc
                      tests: googletest ccache python nginx patchelf xz
PyPI (tests)          python3 -m venv .venv && .venv/bin/pip install h5py numpy tensorboard pillow 'moto[server]'
PyPI (CUDA)           .venv/bin/pip install nvidia-cudnn-frontend, beside a CUDA toolkit with cuDNN >= 9.8 and NCCL
TEXT
}

# shellcheck source=/dev/null
system=$([ -r /etc/os-release ] && . /etc/os-release && echo "${ID:-} ${VERSION_ID:-}")
if [ "$system" != "debian 12" ]; then
  print_other_names
  exit 2
fi

wanted=("${build_packages[@]}")
[ -n "$build_only" ] || wanted+=("${test_packages[@]}")
missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
missing_python=()
if [ -z "$build_only" ]; then
  for package in "${python_packages[@]}"; do
    compgen -G ".venv/lib/python3*/site-packages/${package#*:}" >/dev/null || missing_python+=("${package%%:*}")
  done
fi
# Headers over cuDNN's C interface, of use only where the toolkit is (see cmake/ConvoyCuda.cmake).
if [ -n "$cuda" ] && { [ -n "$(command -v nvcc)" ] || [ -x /usr/local/cuda/bin/nvcc ]; }; then
  compgen -G '.venv/lib/python3*/site-packages/include/cudnn_frontend.h' >/dev/null ||
    missing_python+=(nvidia-cudnn-frontend)
  # For the test of the kernels' machine code (tests/cuda/sass); toolkits often come without it.
  if [ -z "$build_only" ] && [ -z "$(command -v cuobjdump)" ] && [ ! -x /usr/local/cuda/bin/cuobjdump ]; then
    compgen -G '.venv/lib/python3*/site-packages/nvidia/*/bin/cuobjdump' >/dev/null ||
      missing_python+=(nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm)
  fi
fi

if [ ${#missing[@]} -eq 0 ] && [ ${#missing_python[@]} -eq 0 ]; then
  echo "install-deps: nothing is missing"
  exit 0
fi
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
if [ ${#missing[@]} -gt 0 ]; then echo "install-deps: ${as_root[*]} apt-get install ${missing[*]}"; fi
if [ ${#missing_python[@]} -gt 0 ]; then echo "install-deps: .venv/bin/pip install ${missing_python[*]}"; fi
[ -z "$dry_run" ] || exit 0

log=$(mktemp)
policy=/usr/sbin/policy-rc.d made_policy=''
trap 'rm -f "$log"; [ -z "$made_policy" ] || "${as_root[@]}" rm -f "$policy"' EXIT
quietly() { # what it printed is shown only where it fails
  "$@" >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    echo "install-deps: '$*' failed" >&2
    exit 1
  }
}
has_service() { # NAME
  [ -e "/lib/systemd/system/$1.service" ] || [ -e "/etc/init.d/$1" ]
}
disable_service() { # NAME; without an init system (a container) nothing would start it
  if command -v systemctl >/dev/null; then
    quietly "${as_root[@]}" systemctl disable "$1"
  elif command -v update-rc.d >/dev/null && [ -e "/etc/init.d/$1" ]; then
    quietly "${as_root[@]}" update-rc.d "$1" disable
  fi
}
if [ ${#missing[@]} -gt 0 ]; then
  new_services=()
  for service in "${test_services[@]}"; do
    has_service "$service" || new_services+=("$service")
  done
  if [ ! -e "$policy" ]; then # no package starts its daemon here
    made_policy=1
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
  fi
  quietly "${as_root[@]}" apt-get update
  quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
  for service in "${new_services[@]}"; do
    if has_service "$service"; then disable_service "$service"; fi
  done
fi
if [ ${#missing_python[@]} -gt 0 ]; then
  if [ ! -x .venv/bin/pip ]; then
    # With --build-only nobody asked for python3-venv yet.
    python3 -c 'import ensurepip' 2>/dev/null ||
      quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-venv
    quietly python3 -m venv .venv
  fi
  quietly .venv/bin/pip install --disable-pip-version-check "${missing_python[@]}"
fi
echo "install-deps: done"
