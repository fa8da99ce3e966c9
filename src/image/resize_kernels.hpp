// SPDX-License-Identifier: Apache-2.0
// Private to image: the two passes of a resize. All kernels give the same bytes: they compute the same integers.
#pragma once
#include <cstdint>

#include "image/resize.hpp"

namespace convoy {

/// A weight has 22 bits after the point; 255 times their sum stays below 2^31.
constexpr int weight_bits = 22;
/// Vector kernels multiply 16 by 16 bits: weight = high << 15 | low, both signed 16-bit numbers.
constexpr int low_bits = 15;
/// Taps of a vector step along a row; weights are padded with zeros to a multiple of it.
constexpr Index taps_per_step = 4;

/// One row of `axis.size` pixels from one row of `axis.input` pixels.
using ColumnsPass = void (*)(const Resizer::Axis& axis, const std::uint8_t* in, Index channels, std::uint8_t* out);
/// One row of `bytes` values from `count` rows that lie `row_bytes` apart, weighted.
using RowsPass = void (*)(const std::int32_t* weights, Index count, const std::uint8_t* in, Index row_bytes,
                          Index bytes, std::uint8_t* out);

struct ResizeKernels {
  ColumnsPass columns_rgb = nullptr;  ///< 3 channels; may read `columns_slack` bytes behind the row
  RowsPass rows = nullptr;
};
constexpr Index columns_slack = 16;

void resize_columns_generic(const Resizer::Axis& axis, const std::uint8_t* in, Index channels, std::uint8_t* out);
void resize_rows_generic(const std::int32_t* weights, Index count, const std::uint8_t* in, Index row_bytes, Index bytes,
                         std::uint8_t* out);
void resize_columns_avx2(const Resizer::Axis& axis, const std::uint8_t* in, Index channels, std::uint8_t* out);
void resize_rows_avx2(const std::int32_t* weights, Index count, const std::uint8_t* in, Index row_bytes, Index bytes,
                      std::uint8_t* out);

/// The best that this CPU runs.
const ResizeKernels& resize_kernels();

}  // namespace convoy
