// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "backend/backend.hpp"
#include "backend/cuda/graphs/library.hpp"
#include "backend/cuda/runtime/queue.hpp"

namespace convoy::cuda {

/// A Backend whose streams and events NCCL may use too.
class CudaBackend : public Backend {
 public:
  virtual Queue& queue() = 0;
};

/// Computes on the current device, with the library's graphs.
std::unique_ptr<CudaBackend> make_cuda_backend(std::unique_ptr<Library> library);

}  // namespace convoy::cuda
