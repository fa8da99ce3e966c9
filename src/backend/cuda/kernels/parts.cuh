// SPDX-License-Identifier: Apache-2.0
// Sums of sums: 32 channels a block, the parts of each shared out to 8 threads.
#pragma once
#include "backend/cuda/kernels/pack.cuh"
#include "backend/cuda/kernels/tiling.hpp"

namespace convoy::cuda {

constexpr int finish_channels = 32, finish_parts = 8, finish_threads = finish_channels * finish_parts;
inline dim3 finish_block() { return {finish_channels, finish_parts, 1}; }
inline dim3 finish_grid(Index channels) { return grid_over(channels, finish_channels); }

__device__ __forceinline__ int own_column() { return static_cast<int>(blockIdx.x * finish_channels + threadIdx.x); }

/// Sum over parts, in double and in an order that depends on their number alone. The result is that of threads y = 0.
/// All threads of the block call it.
template <int Terms>
__device__ __forceinline__ void add_parts(const PartialSums& sums, int c, bool in_use, double (&total)[Terms]) {
  __shared__ double tile[Terms][finish_parts][finish_channels];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
#pragma unroll
  for (int t = 0; t < Terms; ++t) {
    double sum = 0;
    if (in_use) {
      for (Index part = y; part < sums.parts; part += finish_parts)
        sum += static_cast<double>(sums.at[t][part * sums.stride + c]);
    }
    tile[t][y][x] = sum;
  }
  __syncthreads();
#pragma unroll
  for (int t = 0; t < Terms; ++t) {
    total[t] = 0;
    if (y != 0) continue;
    for (int i = 0; i < finish_parts; ++i) total[t] += tile[t][i][x];
  }
}

}  // namespace convoy::cuda
