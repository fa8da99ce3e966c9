// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "backend/backend.hpp"

namespace convoy {

struct BackendSpec {
  std::string device = "auto";  ///< auto, cpu, cuda. cuda: CUDA or Error(device), never a silent CPU run
  int threads = 0;              ///< CPU threads; 0 = the cores this process may use
  int node_rank = 0, node_size = 1;
};

/// auto takes CUDA where the module and a GPU are found. `chosen` says what was taken and why, in one line.
std::unique_ptr<Backend> make_backend(const BackendSpec& spec, std::string& chosen);

/// cpu/: oneDNN. Throws Error(device) on a machine without AVX2.
std::unique_ptr<Backend> make_cpu_backend(int threads);

/// The table of a training program on a CUDA card that is only described (JSON of cudnn_frontend::DeviceProperties);
/// needs the CUDA module, but neither GPU nor driver. Throws Error(device) or, for the description, Error(usage).
std::string describe_on_card(const std::string& card, const Plan& plan, const CompileSpec& spec);

/// Floats of the arenas of a program and of an updater (on any card), and the memory that the card has, in bytes. Throw
/// as describe_on_card() does.
Index arena_on_card(const std::string& card, const Plan& plan, const CompileSpec& spec);
Index updater_floats_on_card(const Plan& plan, const OptimiserSpec& spec);
double memory_of_card(const std::string& card);

/// Bytes that the GPU of this process has left; 0: there is none.
double free_device_memory();

/// One line a library: name and version; parts that are not built in say so.
std::string backend_versions();

}  // namespace convoy
