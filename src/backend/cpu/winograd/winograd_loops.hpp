// SPDX-License-Identifier: Apache-2.0
// Winograd's F(4x4, 3x3): a tile of 6x6 source pixels, multiplied point by point with a transformed filter, gives a
// tile of 4x4 results (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016). Summed over channels,
// the products of one of the 36 points are a matrix product over tiles.
//
// With stride 2, the outer taps of a filter's line read every other pixel, and the middle tap the pixels between. So a
// line of 9 pixels gives 4 results: F(4, 2) of 5 pixels by the outer taps, and 4 products of the middle one. In two
// dimensions a tile has 81 points, 5 + 4 in each direction, and 81 products in the place of 144. Points of the middle
// tap share a filter, so there are 36 filters again, in groups.
#pragma once
#include <span>

#include "backend/cpu/gemm/panel_form.hpp"
#include "backend/cpu/kernels.hpp"

namespace convoy::cpu {

constexpr std::int64_t winograd_filters = 36;

/// Consecutive transformed filters, from number `first` on, each of which multiplies `points_per_filter` points of a
/// tile.
struct PointGroup {
  std::int64_t filters, points_per_filter, first;
};
/// `points` holds transformed tiles in the order [group][filter][channel block][tile, up to `capacity`][point of the
/// filter][16]. Tile n has index n - `first`.
struct WinogradTiles {
  void* tensor = nullptr;
  TensorLayout layout;                 ///< channels past its last one have zeros in `points`, or nothing
  std::int64_t rows = 0, columns = 0;  ///< tiles of one image
  std::int64_t step = 4;               ///< pixels from one tile to the next
  std::int64_t border = 0;             ///< pixels by which the first one starts outside
  void* points = nullptr;
  PanelForm form = PanelForm::f32;
  std::int64_t capacity = 0, first = 0;
  std::int64_t tiles = 0;  ///< of all images
  bool prefetch = false;   ///< whether transformations prefetch the next tile's pixels

  /// Numbers from one filter's points to the next's. An odd number of cache lines keeps them off the same cache sets.
  std::int64_t plane(const PointGroup& g) const {
    return (layout.blocks() * capacity * g.points_per_filter + 1) * lanes;
  }
};

/// Filters k c 3 3 as sums over `lane` and `channel` of a direction: forward, lanes are results; in the gradient of the
/// source, they are source channels, and the filter is turned by half a turn.
struct WinogradFilters {
  float* canonical = nullptr;  ///< of one filter: 9 floats; strides in floats
  std::int64_t lane = 0, channel = 0, lanes = 0, channels = 0;
  bool turned = false;
  void* filters = nullptr;  ///< [36][lane block][channel][16], zero past the last lane
  bool pairs = false;       ///< [36][lane block][channel / 2][16][2] in bf16, zero past the last channel
  std::int64_t plane = 0;
};

/// For one stride. All work on the units [begin, end), each a result of its own.
struct WinogradTransforms {
  using ReadTiles = void (*)(const WinogradTiles&, std::int64_t begin, std::int64_t end);
  using WriteTiles = void (*)(const WinogradTiles&, const float* bias, std::int64_t begin, std::int64_t end);
  using ConvertFilters = void (*)(const WinogradFilters&, std::int64_t begin, std::int64_t end);

  std::span<const PointGroup> groups;
  // Units are tiles, or pairs of tiles if PanelForm::bf16_pairs.
  ReadTiles read_x;                             ///< B'dB
  WriteTiles write_y;                           ///< A'mA, plus the bias if there is one
  ReadTiles read_dy;                            ///< for the gradient of the source; with stride 1 the same as read_x
  WriteTiles write_dx;                          ///< with stride 1 the same as write_y
  ReadTiles read_dy_for_filters;                ///< A d A', the adjoint of write_y
  ConvertFilters pack_filters, unpack_filters;  ///< G g G' and its adjoint: units of filter_units()
};

struct WinogradKernels {
  WinogradTransforms stride_1, stride_2;
  /// bias = sums over pixels, added to what is there: units of blocks.
  void (*sum_pixels)(const WinogradTiles&, std::int64_t images, float* bias, bool add, std::int64_t begin,
                     std::int64_t end);
};

/// Units of pack_filters and unpack_filters.
inline std::int64_t filter_units(const WinogradFilters& f) {
  return (f.lanes + lanes - 1) / lanes * (f.pairs ? (f.channels + 1) / 2 : f.channels);
}

}  // namespace convoy::cpu
