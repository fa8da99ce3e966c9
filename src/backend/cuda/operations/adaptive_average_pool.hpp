// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cuda/kernels/types.hpp"

namespace convoy::cuda {

/// x: n h w channels, y: n p q channels; windows by backend/rules/adaptive_window.hpp.
struct AdaptivePool {
  Storage storage = Storage::f32;
  int n = 0, h = 0, w = 0, p = 0, q = 0;
  Index channels = 0;
};
cudaError_t adaptive_pool(const AdaptivePool& pool, const void* x, void* y, cudaStream_t stream);
cudaError_t adaptive_pool_backward(const AdaptivePool& pool, const void* dy, void* dx, cudaStream_t stream);

}  // namespace convoy::cuda
