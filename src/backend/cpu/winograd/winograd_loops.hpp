// SPDX-License-Identifier: Apache-2.0
// Winograd's F(4x4, 3x3): a tile of 6x6 source pixels, multiplied point by point with a transformed filter, gives a
// tile of 4x4 results (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016). Summed over channels,
// the products of one of the 36 points are a matrix product over tiles.
#pragma once
#include "backend/cpu/gemm/panel_form.hpp"
#include "backend/cpu/kernels.hpp"

namespace convoy::cpu {

constexpr std::int64_t winograd_points = 36;

/// `points` holds tiles of a tensor, transformed. A tile stands at its number less `first`, and 36 planes are `plane`
/// numbers apart.
struct WinogradTiles {
  void* tensor = nullptr;
  TensorLayout layout;  ///< channels past its last one have zeros in `points`, or nothing
  std::int64_t rows = 0,
               columns = 0;  ///< tiles of one image; they start every 4 pixels, the first one `border` outside
  std::int64_t border = 0;
  void* points = nullptr;
  PanelForm form = PanelForm::f32;
  std::int64_t plane = 0, capacity = 0;
  std::int64_t first = 0;
  std::int64_t tiles = 0;  ///< of all images
  bool prefetch = false;   ///< the next tile's pixels, if the tensor is larger than a cache
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

/// All work on the units [begin, end), each a result of its own.
struct WinogradKernels {
  /// B'dB of tiles of 6x6. Units are tiles, or pairs of them.
  void (*transform_source)(const WinogradTiles&, std::int64_t begin, std::int64_t end);
  /// A d A' of tiles of 4x4, the adjoint of write_result.
  void (*transform_gradient)(const WinogradTiles&, std::int64_t begin, std::int64_t end);
  /// A'mA, plus the bias where there is one.
  void (*write_result)(const WinogradTiles&, const float* bias, std::int64_t begin, std::int64_t end);
  /// G g G' and its adjoint: units of filter_units().
  void (*transform_filters)(const WinogradFilters&, std::int64_t begin, std::int64_t end);
  void (*gather_filters)(const WinogradFilters&, std::int64_t begin, std::int64_t end);
  /// bias = sums over pixels, added to what is there: units of blocks.
  void (*sum_pixels)(const WinogradTiles&, std::int64_t images, float* bias, bool add, std::int64_t begin,
                     std::int64_t end);
};

/// Units of transform_filters and gather_filters.
inline std::int64_t filter_units(const WinogradFilters& f) {
  return (f.lanes + lanes - 1) / lanes * (f.pairs ? (f.channels + 1) / 2 : f.channels);
}

}  // namespace convoy::cpu
