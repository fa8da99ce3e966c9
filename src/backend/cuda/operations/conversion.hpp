// SPDX-License-Identifier: Apache-2.0
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

}  // namespace convoy::cuda
