// SPDX-License-Identifier: Apache-2.0
// The matrix products of Winograd's algorithm, one for each point.
#pragma once
#include "backend/cpu/winograd/winograd_loops.hpp"

namespace convoy::cpu {

/// Matrix products of the points. `filters`: as WinogradFilters::filters. `source` and `result`: as
/// WinogradTiles::points. Results are floats, but for what filter_gradients reads, which is like the source.
struct WinogradProduct {
  void* filters = nullptr;
  std::int64_t filter_plane = 0;  ///< numbers from one point to the next
  const void* source = nullptr;
  void* result = nullptr;
  std::int64_t source_channels = 0, result_channels = 0;  ///< of the result, those of which the tensor has memory
  std::int64_t result_blocks = 0, source_plane = 0, result_plane = 0;
  std::int64_t capacity = 0, tiles = 0;
  bool add = false;  ///< filter_gradients: to what is there
};

/// All work on the units [begin, end), each a result of its own.
struct WinogradProducts {
  /// result = filters x source: units of product_units().
  void (*multiply)(const WinogradProduct&, std::int64_t begin, std::int64_t end);
  /// filters = source x result over the tiles.
  void (*filter_gradients)(const WinogradProduct&, std::int64_t begin, std::int64_t end);
  /// The same with sources and filters as Points::bf16, and as Points::bf16_pairs: sums of fp32. Null without the
  /// instruction.
  void (*multiply_bf16)(const WinogradProduct&, std::int64_t begin, std::int64_t end);
  void (*filter_gradients_bf16)(const WinogradProduct&, std::int64_t begin, std::int64_t end);
};

/// Units of a product: pairs of result blocks, for each point.
inline std::int64_t product_units(const WinogradProduct& p) { return winograd_points * ((p.result_blocks + 1) / 2); }

}  // namespace convoy::cpu
