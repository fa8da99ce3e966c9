// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cuda/kernels/types.hpp"

namespace convoy::cuda {

/// y = x * (0 or 1 / (1 - rate)), the mask of backend/rules/dropout.hpp; on gradients the same, since the mask is made
/// again.
struct DropoutPass {
  Storage storage = Storage::f32;
  Index n = 0, pixels = 0;
  Index channels = 0, stored_channels = 0;  ///< stored ones past `channels` are passed on
  float rate = 0;
  Index node = 0;
  const StepNumbers* step = nullptr;
  const SampleRow* rows = nullptr;
  const void* x = nullptr;
  void* y = nullptr;  ///< may be x
};
cudaError_t dropout(const DropoutPass& pass, cudaStream_t stream);

}  // namespace convoy::cuda
