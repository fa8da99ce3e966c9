// SPDX-License-Identifier: Apache-2.0
// The gradient of batch norm, activation and max pooling in a row (the stem of networks for large images), where
// nothing of the pooled tensor's size but x was stored: two passes over x and the much smaller dy, instead of six
// tensors of x's size.
#pragma once
#include "backend/cuda/operations/batch_norm.hpp"
#include "backend/cuda/operations/pool.hpp"

namespace convoy::cuda {

/// g[h,w] = (sum of dy (+ dy_more) over the windows that it won) * activation'(scale * x + shift).
struct PooledGradient {
  PoolShape shape;
  ActivationRule activation;
  const void *dy = nullptr, *dy_more = nullptr;
  const std::uint8_t* argmax = nullptr;
  const void* x = nullptr;
  const float *scale = nullptr, *shift = nullptr;
};

/// Sums of g and g * (x - mean) over n h w, as reduce_backward (operations/pointwise.hpp) makes them.
struct PooledReduce {
  PooledGradient from;
  const float* mean = nullptr;
  ReductionPlace place;  ///< of 2 terms
  GradientSumsEnd end;
};
cudaError_t reduce_pooled(const PooledReduce& reduce, cudaStream_t stream);

/// dx = a * g + b * x + d; may be x.
struct PooledApply {
  PooledGradient from;
  const float *a = nullptr, *b = nullptr, *d = nullptr;
  void* dx = nullptr;
};
cudaError_t apply_pooled(const PooledApply& apply, cudaStream_t stream);

}  // namespace convoy::cuda
