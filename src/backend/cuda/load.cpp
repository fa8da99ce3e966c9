// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/load.hpp"

#include "backend/cuda/driver.hpp"
#include "backend/cuda/module.hpp"
#include "core/module.hpp"
#include "core/version.hpp"

namespace convoy {
namespace {

constexpr const char* built_with = CONVOY_CUDA_VERSIONS;

bool is_built() { return built_with[0] != '\0'; }

}  // namespace

std::unique_ptr<Backend> load_cuda_backend(const BackendSpec& spec, std::string& reason) {
  if (!is_built()) {
    reason = "this build has no CUDA part";
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
  static const Module module = open_module("libconvoy_cuda.so");
  if (module.handle == nullptr) {
    reason =
        module.path.empty() ? "libconvoy_cuda.so is neither beside the program nor in ../lib/convoy" : module.problem;
    return nullptr;
  }
  const auto entry = reinterpret_cast<decltype(&convoy_cuda_entry)>(module_symbol(module, "convoy_cuda_entry"));
  if (entry == nullptr || entry()->build != build_id() + ", " + compiler()) {
    reason = module.path + " is of another build than the program";
    return nullptr;
  }
  return entry()->make_backend(spec, reason);
}

std::string cuda_version() { return is_built() ? built_with : "CUDA not built"; }

}  // namespace convoy
