// SPDX-License-Identifier: Apache-2.0
// How rows x channels are dealt to threads. A thread has its channels for good (a pack of 8, or one where channels % 8
// != 0), so that what belongs to channels stays in registers, and takes rows in strides.
#pragma once
#include <algorithm>

#include "backend/cuda/kernels/types.hpp"

namespace convoy::cuda {

constexpr int tile_threads = 256;

struct Tiling {
  dim3 grid,
      block;  ///< x: channel packs in a block, rows over the grid's x; y: rows in a block, packs over the grid's y
};

/// Threads of a block along channels, at most so many, and along rows.
inline dim3 tile_block(Index channels, Index most_across = tile_threads) {
  const Index packs = channels % 8 == 0 ? channels / 8 : channels;
  const auto x = static_cast<unsigned>(std::min<Index>(packs, most_across));
  return {x, tile_threads / x, 1};
}

inline Tiling tile(Index rows, Index channels, Index blocks_at_most, Index rows_a_thread,
                   Index most_across = tile_threads) {
  const Index packs = channels % 8 == 0 ? channels / 8 : channels;
  const dim3 block = tile_block(channels, most_across);
  const Index across = (packs + block.x - 1) / block.x;
  const Index rows_a_block = static_cast<Index>(block.y) * rows_a_thread;
  const Index wanted = (rows + rows_a_block - 1) / rows_a_block;
  const Index limit = std::max<Index>(1, blocks_at_most / across);
  return {{static_cast<unsigned>(std::clamp<Index>(wanted, 1, limit)), static_cast<unsigned>(across), 1}, block};
}

/// Elementwise passes: enough blocks for every card, each thread with two rows under way.
inline Tiling tile_elements(Index rows, Index channels) { return tile(rows, channels, 8192, 2); }
/// Elementwise passes whose blocks begin with a norm's sums (operations/pointwise.cu): few channels per block.
inline Tiling tile_few_channels(Index rows, Index channels) {
  return tile(rows, channels, 8192, 2, channels % 8 == 0 ? 8 : 64);
}

/// Channels of a block of a reduction: so few that the last blocks have few sums of blocks to add.
constexpr int reduction_channels = 64;
/// Reductions, see kernels/columns.cuh. A function of shape alone, so that sums don't depend on the card.
inline Tiling tile_reduction(Index rows, Index channels) {
  return tile(rows, channels, 1024, 8, channels % 8 == 0 ? reduction_channels / 8 : reduction_channels);
}
/// This many blocks of a column of the grid meet and add their sums; then the groups meet.
constexpr int group_blocks = 32;
inline Index reduction_groups(Index blocks) { return (blocks + group_blocks - 1) / group_blocks; }

/// What a reduction of so many terms needs beside its operands.
struct ReductionSpace {
  Index doubles = 0, arrivals = 0;
  ReductionSpace(Index rows, Index channels, int terms) {
    const dim3 grid = tile_reduction(rows, channels).grid;
    doubles = (grid.x + reduction_groups(grid.x)) * terms * channels;
    arrivals = grid.y * (reduction_groups(grid.x) + 1);
  }
};
/// Its place in device memory.
struct ReductionPlace {
  double* sums = nullptr;        ///< of blocks, then of groups: [blocks + groups][terms][channels]
  unsigned* arrivals = nullptr;  ///< of each column: of groups, then one where the groups meet
};

/// Sums in parts that are added in double and in their order. Element c of part i of term t lies at
/// at[t][i * stride + c].
struct PartialSums {
  const float* at[3] = {};
  Index parts = 1, stride = 0;
};

/// Blocks of `threads` over n elements.
inline dim3 grid_over(Index n, int threads) {
  return {static_cast<unsigned>(std::max<Index>(1, (n + threads - 1) / threads)), 1, 1};
}

}  // namespace convoy::cuda
