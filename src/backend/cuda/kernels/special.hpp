// SPDX-License-Identifier: Apache-2.0
// Operations that few networks have.
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

/// backend/rules/local_response.hpp; rows times channels; up to 4096 channels.
struct LocalResponse {
  Storage storage = Storage::f32;
  Index rows = 0, channels = 0;
  int size = 5;
  float alpha = 1e-4F, beta = 0.75F, k = 1;
};
cudaError_t local_response(const LocalResponse& norm, const void* x, void* y, cudaStream_t stream);
/// dx may be dy.
cudaError_t local_response_backward(const LocalResponse& norm, const void* x, const void* dy, void* dx,
                                    cudaStream_t stream);

}  // namespace convoy::cuda
