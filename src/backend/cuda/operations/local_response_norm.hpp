// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cuda/kernels/types.hpp"

namespace convoy::cuda {

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
