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

/// Threads of a block along channels and along rows.
inline dim3 tile_block(Index channels) {
  const Index packs = channels % 8 == 0 ? channels / 8 : channels;
  const auto x = static_cast<unsigned>(std::min<Index>(packs, tile_threads));
  return {x, tile_threads / x, 1};
}

inline Tiling tile(Index rows, Index channels, Index blocks_at_most, Index rows_a_thread) {
  const Index packs = channels % 8 == 0 ? channels / 8 : channels;
  const dim3 block = tile_block(channels);
  const Index across = (packs + block.x - 1) / block.x;
  const Index rows_a_block = static_cast<Index>(block.y) * rows_a_thread;
  const Index wanted = (rows + rows_a_block - 1) / rows_a_block;
  const Index limit = std::max<Index>(1, blocks_at_most / across);
  return {{static_cast<unsigned>(std::clamp<Index>(wanted, 1, limit)), static_cast<unsigned>(across), 1}, block};
}

/// Elementwise passes: enough blocks for every card, each thread with two rows under way.
inline Tiling tile_elements(Index rows, Index channels) { return tile(rows, channels, 8192, 2); }
/// Reductions: see reduction_blocks().
inline Tiling tile_reduction(Index rows, Index channels) { return tile(rows, channels, 1024, 8); }

/// Blocks that reductions over `rows` are cut into: the length of their partial sums' first axis. A function of shape
/// alone, so that sums don't depend on the card.
inline int reduction_blocks(Index rows, Index channels) {
  return static_cast<int>(tile_reduction(rows, channels).grid.x);
}

/// Sums in parts that are added in double and in their order. Element c of part i of term t lies at
/// at[t][i * stride + c].
struct PartialSums {
  const float* at[3] = {};
  Index parts = 1, stride = 0;
  static PartialSums of_reduce(const float* partial, Index blocks, int terms, Index channels) {
    PartialSums sums{{partial, partial + channels, partial + 2 * channels}, blocks, terms * channels};
    if (terms < 3) sums.at[2] = nullptr;
    return sums;
  }
};

/// Blocks of `threads` over n elements.
inline dim3 grid_over(Index n, int threads) {
  return {static_cast<unsigned>(std::max<Index>(1, (n + threads - 1) / threads)), 1, 1};
}

}  // namespace convoy::cuda
