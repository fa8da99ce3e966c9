// SPDX-License-Identifier: Apache-2.0
// Convolutions with few channels in a group, sixteen results at a time: a lane is a channel of the result, and it
// multiplies the source channels of its own group only. Planes in scratch memory hold the source with its border, so
// that the loops over filters know neither layouts nor edges.
#pragma once
#include "backend/cpu/kernels.hpp"

namespace convoy::cpu {

/// Which lane of a source pixel a lane of the result multiplies, for channel i of its group.
enum class LaneSource : std::uint8_t {
  own,       ///< its own, in the i-th plane
  permuted,  ///< the i-th of its group; groups are 2, 4 or 8 lanes
  shared     ///< all lanes the i-th channel of one group
};

/// Sixteen channels of a window of a tensor, for a plane. Zero outside the tensor.
struct WindowCopy {
  const void* tensor = nullptr;
  TensorLayout layout;
  std::int64_t image = 0, block = 0;
  const std::int64_t* offsets = nullptr;  ///< null: the block's channels; else of 16 channels in a pixel, -1 for none
  std::int64_t top = 0, left = 0;         ///< pixel of the tensor that comes first
  std::int64_t rows = 0;
  /// Every `step`-th column lies next to the other, so that filters of that stride read neighbours.
  std::int64_t step = 1, columns = 0;  ///< columns: of each of the `step` parts of a row
  float* plane = nullptr;
  std::int64_t row = 0, part = 0;  ///< floats from one to the next
};

/// Rows of results on their way back to a tensor in bf16, or whose channels are no whole block.
struct RowsCopy {
  void* tensor = nullptr;
  TensorLayout layout;
  std::int64_t image = 0, block = 0;
  std::int64_t top = 0, left = 0, step = 1;  ///< pixels of the tensor
  std::int64_t rows = 0, columns = 0;
  const float* from = nullptr;  ///< [rows][columns][16]
};

constexpr int longest_run = 5;

/// Some taps of a filter's row, which read neighbours in a plane.
struct TapRun {
  std::int64_t source = 0, weights = 0;  ///< of the first, in floats
  std::int64_t step = 0;                 ///< floats from one tap's weights to the next
  int taps = 1;                          ///< at most longest_run
};

/// The taps of a filter: some rows of equal runs.
struct FilterTaps {
  const TapRun* runs = nullptr;
  std::int64_t count = 0, rows = 0;
  std::int64_t source_row = 0, weights_row = 0;  ///< floats from a row of the filter to the next
  LaneSource lane = LaneSource::own;
  int group = 1;              ///< lanes, where they are permuted
  std::int64_t first = 0;     ///< the group's first channel in its plane, where lanes share it
  std::int64_t channels = 1;  ///< of a group
  std::int64_t source_channel = 0,
               weights_channel = 0;  ///< floats from one plane, or one channel's weights, to the next
};

/// result = bias + sum over taps and channels.
struct LaneSum {
  FilterTaps filter;
  const float* source = nullptr;
  const float* weights = nullptr;
  const float* bias = nullptr;  ///< 16
  float* result = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t source_row = 0, result_row = 0, result_pixel = 0;  ///< floats
};

/// weights += source x dy, summed over pixels in fp32, one chain of additions for each weight.
struct LaneGradient {
  FilterTaps filter;
  const float* source = nullptr;
  const float* dy = nullptr;  ///< zeros past the last column
  float* weights = nullptr;
  std::int64_t rows = 0, columns = 0;  ///< columns: a multiple of gradient_columns
  std::int64_t source_row = 0, dy_row = 0;
};
constexpr std::int64_t gradient_columns = 4;
/// Pixels whose products are added in fp32, at most, before their sum is added in double.
constexpr std::int64_t longest_chain = 256;
/// Pixels that the sums read past the last result of a row.
constexpr std::int64_t overread_pixels = 16;

struct GroupedKernels {
  void (*fill)(const WindowCopy&);
  void (*put)(const RowsCopy&);
  void (*sum)(const LaneSum&);
  void (*gradient)(const LaneGradient&);
  /// total += sums, sums = 0.
  void (*flush)(float* sums, double* total, std::int64_t n);
  /// result = total, or result += total.
  void (*finish)(const double* total, float* result, std::int64_t n, bool add);
  /// total[16] += vectors of a plane.
  void (*add_pixels)(const float* plane, std::int64_t pixels, double* total);
};

}  // namespace convoy::cpu
