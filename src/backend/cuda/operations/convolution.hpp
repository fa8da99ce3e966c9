// SPDX-License-Identifier: Apache-2.0
// The gradient of a bias. The convolutions themselves are cuDNN's, and filters' gradients are collected when a stage
// ends (kernels/gradients.hpp).
#pragma once
#include "backend/cuda/kernels/tiling.hpp"

namespace convoy::cuda {

/// db[c] = sum over rows of dy[row][c] / loss scale, for c < columns. One launch.
struct BiasGradient {
  Storage storage = Storage::f32;
  Index rows = 0, columns = 0, stored_columns = 0;
  const void* dy = nullptr;
  ReductionPlace place;               ///< of 1 term
  const float* loss_scale = nullptr;  ///< null: 1
  float* db = nullptr;
};
cudaError_t bias_gradient(const BiasGradient& gradient, cudaStream_t stream);

}  // namespace convoy::cuda
