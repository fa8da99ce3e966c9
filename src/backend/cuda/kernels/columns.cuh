// SPDX-License-Identifier: Apache-2.0
// Sums over rows, per channel: each thread sums in registers, a block adds its rows' threads in shared memory.
#pragma once
#include "backend/cuda/kernels/pack.cuh"
#include "backend/cuda/kernels/tiling.hpp"

namespace convoy::cuda {

/// First channel of this thread; at or past `channels`: it has none, but must meet the others at barriers.
template <int Width>
__device__ __forceinline__ int own_channel() {
  return static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * Width;
}
__device__ __forceinline__ Index first_row() { return static_cast<Index>(blockIdx.x) * blockDim.y + threadIdx.y; }
__device__ __forceinline__ Index row_stride() { return static_cast<Index>(gridDim.x) * blockDim.y; }

/// Bytes of shared memory that write_partial() needs.
template <int Width, int Terms>
std::size_t partial_bytes(const Tiling& tiling) {
  return sizeof(float) * Terms * Width * tiling.block.x * tiling.block.y;
}

/// partial[blockIdx.x][term][channels] = sum over the block's rows. All threads of the block call it.
template <int Width, int Terms>
__device__ __forceinline__ void write_partial(const Floats<Width> (&sums)[Terms], float* partial, int channels) {
  DYNAMIC_SHARED(float, tile);
  const int across = static_cast<int>(blockDim.x) * Width, size = across * static_cast<int>(blockDim.y);
  const int at = static_cast<int>(threadIdx.y) * across + static_cast<int>(threadIdx.x) * Width;
#pragma unroll
  for (int t = 0; t < Terms; ++t) {
#pragma unroll
    for (int k = 0; k < Width; ++k) tile[t * size + at + k] = sums[t].at[k];
  }
  __syncthreads();
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  const int first = static_cast<int>(blockIdx.y) * across;
  for (int i = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); i < Terms * across; i += threads) {
    const int term = i / across, c = i % across;
    if (first + c >= channels) continue;
    float sum = 0;
    for (int y = 0; y < static_cast<int>(blockDim.y); ++y) sum += tile[term * size + y * across + c];
    partial[(static_cast<Index>(blockIdx.x) * Terms + term) * channels + first + c] = sum;
  }
}

}  // namespace convoy::cuda
