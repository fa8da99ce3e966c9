// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cuda/kernels/types.hpp"

namespace convoy::cuda {

/// Windows of kernel x kernel, ties of max to the first element (row by row); average counts padding where asked.
struct PoolShape {
  Storage storage = Storage::f32;
  int n = 0, h = 0, w = 0, p = 0, q = 0;  ///< x: n h w channels, y: n p q channels
  Index channels = 0;
  int kernel = 2, stride = 2, pad = 0;  ///< kernel at most 15
  bool count_padding = true;
};

/// argmax: one byte an element of y, r * kernel + s; null: not wanted. With scale the pooled tensor is
/// activation(scale * x + shift), computed on the fly: batch norm, activation and pooling in one pass.
struct MaxPool {
  PoolShape shape;
  const void* x = nullptr;
  const float *scale = nullptr, *shift = nullptr;
  ActivationRule activation;
  void* y = nullptr;
  std::uint8_t* argmax = nullptr;
};
cudaError_t max_pool(const MaxPool& pool, cudaStream_t stream);
/// dx[h,w] = sum of dy over the windows that it won.
cudaError_t max_pool_backward(const PoolShape& shape, const void* dy, const std::uint8_t* argmax, void* dx,
                              cudaStream_t stream);

cudaError_t average_pool(const PoolShape& shape, const void* x, void* y, cudaStream_t stream);
cudaError_t average_pool_backward(const PoolShape& shape, const void* dy, void* dx, cudaStream_t stream);

}  // namespace convoy::cuda
