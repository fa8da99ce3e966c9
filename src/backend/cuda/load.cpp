// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/load.hpp"

#include <fmt/core.h>

#include "backend/cuda/driver.hpp"
#include "backend/cuda/module.hpp"
#include "core/errors.hpp"
#include "core/module.hpp"
#include "core/version.hpp"

namespace convoy {
namespace {

constexpr const char* built_with = CONVOY_CUDA_VERSIONS;

bool is_built() { return built_with[0] != '\0'; }

/// Null, and why.
const CudaEntry* entry_of(const Module& module, std::string& reason) {
  if (module.path.empty()) {
    reason =
        "libconvoy_cuda.so is neither beside the program nor in ../lib/convoy; install it there, or set CONVOY_MODULE_DIR";
  } else if (module.handle == nullptr) {
    reason = fmt::format("{}; put its folder on LD_LIBRARY_PATH", module.problem);
  } else {
    const auto entry = reinterpret_cast<decltype(&convoy_cuda_entry)>(module_symbol(module, "convoy_cuda_entry"));
    if (entry != nullptr && entry()->build == build_id() + ", " + compiler()) return entry();
    reason = module.path + " is of another build than the program; install both together";
  }
  return nullptr;
}

const CudaEntry* open_entry(std::string& reason) {
  static const Module module = open_module("libconvoy_cuda.so");
  return entry_of(module, reason);
}

}  // namespace

std::unique_ptr<Backend> load_cuda_backend(const BackendSpec& spec, std::string& reason) {
  if (!is_built()) {
    reason = "this build has no CUDA part; build on a machine with the CUDA toolkit";
    return nullptr;
  }
  if (spec.device == "auto" && !has_nvidia_device()) {
    reason = "this machine has no NVIDIA device";
    return nullptr;
  }
  const DriverState driver = start_driver(CONVOY_CUDA_NEEDS);
  if (driver.devices == 0) {
    reason = driver.problem;
    return nullptr;
  }
  const CudaEntry* const entry = open_entry(reason);
  return entry == nullptr ? nullptr : entry->make_backend(spec, reason);
}

namespace {

const CudaEntry& entry_for_cards() {
  std::string reason = "this build has no CUDA part; build on a machine with the CUDA toolkit";
  const CudaEntry* const entry = is_built() ? open_entry(reason) : nullptr;
  if (entry == nullptr) fail(Exit::device, "programs for a described card can't be compiled: {}", reason);
  return *entry;
}

}  // namespace

std::string describe_cuda_program(const std::string& card, const Plan& plan, const CompileSpec& spec) {
  return entry_for_cards().describe_on_card(card, plan, spec);
}

Index arena_on_cuda_card(const std::string& card, const Plan& plan, const CompileSpec& spec) {
  return entry_for_cards().arena_on_card(card, plan, spec);
}

Index updater_floats_on_cuda_card(const Plan& plan, const OptimiserSpec& spec) {
  return entry_for_cards().updater_floats_on_card(plan, spec);
}

double free_cuda_memory() {
  std::string reason;
  const CudaEntry* const entry = is_built() ? open_entry(reason) : nullptr;
  return entry == nullptr ? 0 : entry->free_memory();
}

std::string cuda_version() { return is_built() ? built_with : "CUDA not built"; }

}  // namespace convoy
