// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "backend/factory.hpp"

namespace convoy {

/// Null where there is no CUDA part or no GPU that it can use; `reason` then says why and what to do. With device auto
/// nothing of CUDA, not even the driver, is opened on a machine that has no NVIDIA device. Errors of a GPU that is
/// there are thrown.
std::unique_ptr<Backend> load_cuda_backend(const BackendSpec& spec, std::string& reason);

/// describe_on_card() of backend/factory.hpp.
std::string describe_cuda_program(const std::string& card, const Plan& plan, const CompileSpec& spec);

/// arena_on_card(), updater_floats_on_card() and free_device_memory() of backend/factory.hpp.
Index arena_on_cuda_card(const std::string& card, const Plan& plan, const CompileSpec& spec);
Index updater_floats_on_cuda_card(const Plan& plan, const OptimiserSpec& spec);
double free_cuda_memory();

/// What the module was built with, for backend_versions(). Opens nothing.
std::string cuda_version();

}  // namespace convoy
