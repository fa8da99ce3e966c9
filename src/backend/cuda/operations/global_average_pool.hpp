// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cuda/kernels/types.hpp"

namespace convoy::cuda {

/// y[n][channels] = mean over pixels.
struct GlobalPool {
  Storage storage = Storage::f32;
  Index n = 0, pixels = 0, channels = 0;
};
cudaError_t global_pool(const GlobalPool& pool, const void* x, void* y, cudaStream_t stream);
cudaError_t global_pool_backward(const GlobalPool& pool, const void* dy, void* dx, cudaStream_t stream);

}  // namespace convoy::cuda
