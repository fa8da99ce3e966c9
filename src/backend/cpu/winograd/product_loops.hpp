// SPDX-License-Identifier: Apache-2.0
// The matrix products of Winograd's algorithm, one for each point.
#pragma once
#include "backend/cpu/winograd/winograd_loops.hpp"

namespace convoy::cpu {

/// Matrix products of the points. `filters`: [36][result block][source channel][16].
struct WinogradProduct {
  float* filters = nullptr;
  std::int64_t filter_plane = 0;  ///< floats from one point to the next
  const float* source = nullptr;  ///< like WinogradTiles::points, and so is
  float* result = nullptr;
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
};

/// Units of a product: pairs of result blocks, for each point.
inline std::int64_t product_units(const WinogradProduct& p) { return winograd_points * ((p.result_blocks + 1) / 2); }

}  // namespace convoy::cpu
