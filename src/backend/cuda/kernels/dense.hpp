// SPDX-License-Identifier: Apache-2.0
// What surrounds the matrix products of linear layers and biased convolutions, and how gradients of filters come from
// storage into the gradient block.
#pragma once
#include "backend/cuda/kernels/types.hpp"

namespace convoy::cuda {

/// to[rows][to_columns] = from[rows][from_columns] + bias over the first `columns`; the rest of `to` is 0. bias null:
/// none. Casts: to_storage and from_storage may differ.
struct RowsCopy {
  Index rows = 0, columns = 0;
  const void* from = nullptr;
  Index from_columns = 0;
  Storage from_storage = Storage::f32;
  void* to = nullptr;
  Index to_columns = 0;
  Storage to_storage = Storage::f32;
  const float* bias = nullptr;
};
cudaError_t copy_rows(const RowsCopy& copy, cudaStream_t stream);

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
