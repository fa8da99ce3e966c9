// SPDX-License-Identifier: Apache-2.0
// What the main program may know of a GPU without any library of CUDA but the driver's own.
#pragma once
#include <string>

namespace convoy {

/// True where the kernel module of an NVIDIA driver shows itself. Opens no library.
bool has_nvidia_device();

struct DriverState {
  int devices = 0;      ///< visible ones; 0: `problem` says why
  std::string problem;  ///< no driver, no device, too old a driver: one clause, with what to do
};

/// Opens the driver's library and starts it. `wanted_version` as in cudart: 13000 is CUDA 13.0.
DriverState start_driver(int wanted_version);

}  // namespace convoy
