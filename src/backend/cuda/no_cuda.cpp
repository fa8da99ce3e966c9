// SPDX-License-Identifier: Apache-2.0
// Stands in for the CUDA part where it isn't built.
#include "backend/cuda/cuda_module.hpp"

namespace convoy {

std::unique_ptr<Backend> load_cuda_backend(const BackendSpec&, std::string& reason) {
  reason = "this build has no CUDA part";
  return nullptr;
}

std::string cuda_version() { return "CUDA not built"; }

}  // namespace convoy
