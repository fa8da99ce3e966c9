// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/conversion.hpp"

#include "backend/cuda/kernels/division.cuh"
#include "backend/cuda/kernels/pack.cuh"
#include "backend/cuda/kernels/tiling.hpp"

namespace convoy::cuda {
namespace {

constexpr int threads = 256;

template <class To, class From>
__global__ void __launch_bounds__(threads) rows_kernel(RowsCopy copy) {
  await_previous();
  const Index i = static_cast<Index>(blockIdx.x) * threads + threadIdx.x;
  if (i >= copy.rows * copy.to_columns) return;
  const Divided place = divided(i, copy.to_columns);
  const Index row = place.quotient, column = place.rest;
  float value = 0;
  if (column < copy.columns) {
    value = Element<From>::up(static_cast<const From*>(copy.from)[row * copy.from_columns + column]);
    if (copy.bias != nullptr) value += copy.bias[column];
  }
  static_cast<To*>(copy.to)[i] = Element<To>::down(value);
}

}  // namespace

cudaError_t copy_rows(const RowsCopy& copy, cudaStream_t stream) {
  if (copy.rows * copy.to_columns <= 0) return cudaSuccess;
  const dim3 grid = grid_over(copy.rows * copy.to_columns, threads);
  return with_storage(copy.to_storage, [&](auto to) {
    return with_storage(copy.from_storage, [&](auto from) {
      return launch(rows_kernel<typename decltype(to)::type, typename decltype(from)::type>, grid, threads, 0, stream,
                    copy);
    });
  });
}

}  // namespace convoy::cuda
