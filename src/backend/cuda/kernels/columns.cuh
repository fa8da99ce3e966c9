// SPDX-License-Identifier: Apache-2.0
// Sums over rows, per channel: each thread sums in registers, a block adds its rows' threads in shared
// memory, and the last blocks add the blocks.
#pragma once
#include "backend/cuda/kernels/meeting.cuh"
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

/// The same from the last row on: a pass over what the launch before has just written, or read from its first row on,
/// begins with the rows that the L2 cache still holds.
__device__ __forceinline__ Index from_the_end(Index row, Index rows) { return rows - 1 - row; }

/// Bytes of shared memory that write_partial() needs.
template <int Width, int Terms>
std::size_t partial_bytes(const Tiling& tiling) {
  return sizeof(float) * Terms * Width * tiling.block.x * tiling.block.y;
}

/// sums[blockIdx.x][term][channels] = sum over the block's rows. All threads of the block call it.
template <int Width, int Terms>
__device__ __forceinline__ void write_partial(const Floats<Width> (&sums)[Terms], const ReductionPlace& to,
                                              int channels) {
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
    double sum = 0;
    for (int y = 0; y < static_cast<int>(blockDim.y); ++y)
      sum += static_cast<double>(tile[term * size + y * across + c]);
    to.sums[(static_cast<Index>(blockIdx.x) * Terms + term) * channels + first + c] = sum;
  }
}

/// total = sum over rows [0, count) of from[row][term][channels], in an order that depends on `count` and the block's
/// form alone. Returns whether this thread has the total of a channel, and sets that. All threads of the block call it.
template <int Terms>
__device__ __forceinline__ bool add_rows(const double* from, int count, int across, int channels, int& channel,
                                         double (&total)[Terms]) {
  __shared__ double tile[Terms][tile_threads];
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int lanes = static_cast<int>(blockDim.x * blockDim.y) / across, lane = thread / across;
  channel = static_cast<int>(blockIdx.y) * across + thread % across;
  const bool in_use = lane < lanes && channel < channels;
#pragma unroll
  for (int t = 0; t < Terms; ++t) total[t] = 0;
  if (in_use) {
#pragma unroll 4
    for (int row = lane; row < count; row += lanes) {
#pragma unroll
      for (int t = 0; t < Terms; ++t)
        total[t] += __ldcg(from + (static_cast<Index>(row) * Terms + t) * channels + channel);
    }
  }
#pragma unroll
  for (int t = 0; t < Terms; ++t) tile[t][thread] = total[t];
  __syncthreads();
  if (!in_use || lane != 0) return false;
  for (int other = 1; other < lanes; ++other) {
#pragma unroll
    for (int t = 0; t < Terms; ++t) total[t] += tile[t][other * across + thread];
  }
  return true;
}

/// The end of a reduction whose blocks have written their sums: of up to 32 blocks the last adds theirs, of these
/// groups the last adds the groups', and calls finish(channel, total) once for each channel of the column. All threads
/// of the block call it.
template <int Terms, class Finish>
__device__ __forceinline__ void add_over_grid(const ReductionPlace& place, int across, int channels,
                                              const Finish& finish) {
  const int blocks = static_cast<int>(gridDim.x), group = static_cast<int>(blockIdx.x) / group_blocks;
  const int groups = (blocks + group_blocks - 1) / group_blocks, begin = group * group_blocks;
  const int members = min(group_blocks, blocks - begin);
  unsigned* const arrivals = place.arrivals + blockIdx.y * static_cast<unsigned>(groups + 1);
  if (!comes_last(arrivals + group, static_cast<unsigned>(members))) return;
  int channel = 0;
  double total[Terms];
  bool has_total = add_rows<Terms>(place.sums + static_cast<Index>(begin) * Terms * channels, members, across, channels,
                                   channel, total);
  if (groups > 1) {
    double* const of_groups = place.sums + static_cast<Index>(blocks) * Terms * channels;
    if (has_total) {
#pragma unroll
      for (int t = 0; t < Terms; ++t)
        of_groups[(static_cast<Index>(group) * Terms + t) * channels + channel] = total[t];
    }
    if (!comes_last(arrivals + groups, static_cast<unsigned>(groups))) return;
    has_total = add_rows<Terms>(of_groups, groups, across, channels, channel, total);
  }
  if (has_total) finish(channel, total);
}

}  // namespace convoy::cuda
