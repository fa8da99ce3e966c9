// SPDX-License-Identifier: Apache-2.0
// How the gradients of weights and biases come into the gradient block. The convolutions themselves are cuDNN's.
#pragma once
#include "backend/cuda/kernels/types.hpp"

namespace convoy::cuda {

/// db[c] = sum over rows of dy[row][c] / loss scale, for c < columns. One pass with partial sums and one to add them.
struct BiasGradient {
  Storage storage = Storage::f32;
  Index rows = 0, columns = 0, stored_columns = 0;
  const void* dy = nullptr;
  float* partial = nullptr;           ///< reduction_blocks(rows, stored_columns) * stored_columns
  const float* loss_scale = nullptr;  ///< null: 1
  float* db = nullptr;
};
cudaError_t bias_gradient(const BiasGradient& gradient, cudaStream_t stream);

/// to[k][c][rs] = from[k][rs][stored_c] / loss scale: a filter's gradient, KRSC in storage, into the canonical block.
struct FilterGradient {
  Storage storage = Storage::f32;
  Index k = 0, c = 0, rs = 1, stored_c = 0;
  const void* from = nullptr;
  float* to = nullptr;
  const float* loss_scale = nullptr;  ///< null: 1
};
cudaError_t filter_gradient(const FilterGradient& gradient, cudaStream_t stream);

}  // namespace convoy::cuda
