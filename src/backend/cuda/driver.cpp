// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/driver.hpp"

#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>

namespace convoy {
namespace {

// Of the driver's interface, which has kept its numbers since CUDA 2; without its header, so that every build has this.
constexpr int success = 0, no_device = 100, stub_library = 34, insufficient_driver = 35, mismatch = 803;

template <class Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string visible_devices() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible == nullptr ? std::string() : fmt::format("; CUDA_VISIBLE_DEVICES is '{}'", visible);
}

std::string start_problem(int result) {
  switch (result) {
    case no_device:
      return fmt::format("the NVIDIA driver sees no GPU{}; see nvidia-smi, or ask the scheduler for one",
                         visible_devices());
    case stub_library:
      return "the libcuda.so.1 that was found is the CUDA toolkit's stub; take it off LD_LIBRARY_PATH";
    case insufficient_driver:
    case mismatch:
      return "the NVIDIA driver's kernel module and library don't match; the machine needs a restart or an update";
    default:
      return fmt::format("the NVIDIA driver does not start, cuInit gives {}; see nvidia-smi", result);
  }
}

}  // namespace

bool has_nvidia_device() {
  for (const char* path : {"/dev/nvidiactl", "/dev/nvidia0", "/proc/driver/nvidia/version", "/dev/dxg"})
    if (access(path, F_OK) == 0) return true;
  return false;
}

DriverState start_driver(int wanted_version) {
  DriverState state;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    state.problem = "no NVIDIA driver, libcuda.so.1 was not found; run on a machine with a GPU";
    return state;
  }
  const auto init = symbol<int(unsigned)>(library, "cuInit");
  const auto count = symbol<int(int*)>(library, "cuDeviceGetCount");
  const auto version = symbol<int(int*)>(library, "cuDriverGetVersion");
  if (init == nullptr || count == nullptr || version == nullptr) {
    state.problem = "the libcuda.so.1 that was found is no NVIDIA driver; see LD_LIBRARY_PATH";
    return state;
  }
  int supported = 0;
  if (const int result = init(0); result != success) {
    state.problem = start_problem(result);
  } else if (version(&supported) != success || supported < wanted_version) {
    state.problem = fmt::format("the NVIDIA driver is for CUDA {}, this build needs {}; update the driver",
                                version_text(supported), version_text(wanted_version));
  } else if (count(&state.devices) != success || state.devices == 0) {
    state.devices = 0;
    state.problem = start_problem(no_device);
  }
  return state;
}

}  // namespace convoy
