// SPDX-License-Identifier: Apache-2.0
// What the module libconvoy_cuda.so shows. NCCL's collectives have a module of their own
// (comm/nccl/module.hpp).
#pragma once
#include <memory>
#include <string>

#include "backend/factory.hpp"

namespace convoy {

struct CudaEntry {
  const char* build = nullptr;  ///< build_id() and compiler(): classes are passed, so both sides must be of one build
  /// Null where the libraries that were found are older than what it was built for, or the GPU is; `problem` then says
  /// which and what to do.
  std::unique_ptr<Backend> (*make_backend)(const BackendSpec& spec, std::string& problem) = nullptr;
  /// The functions of backend/factory.hpp.
  std::string (*describe_on_card)(const std::string& card, const Plan& plan, const CompileSpec& spec) = nullptr;
  Index (*arena_on_card)(const std::string& card, const Plan& plan, const CompileSpec& spec) = nullptr;
  Index (*updater_floats_on_card)(const Plan& plan, const OptimiserSpec& spec) = nullptr;
  double (*free_memory)() = nullptr;
};

}  // namespace convoy

extern "C" const convoy::CudaEntry* convoy_cuda_entry();
