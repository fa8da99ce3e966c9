// SPDX-License-Identifier: Apache-2.0
// Private to image: the two passes of a resize. All kernels give the same bytes: they compute the same integers.
#pragma once
#include <span>

#include <cstdint>

#include "image/resize.hpp"

namespace convoy {

/// A weight has 22 bits after the point; 255 times their sum stays below 2^31.
constexpr int weight_bits = 22;
/// Rows that a vector kernel takes at once.
constexpr Index strip_rows = 16;

/// The weights of one axis as Pillow computes them: in double, each sum made 1, then rounded to 22 bits. Kept where
/// they are those of the last call already.
void fill_axis(Resizer::Axis& axis, Index input, double begin, double length, Index size);

/// Some rows before and after the pass along them.
struct RowStrip {
  const std::uint8_t* in = nullptr;
  Index in_row_bytes = 0;
  std::uint8_t* out = nullptr;
  Index out_row_bytes = 0;
  Index rows = 0, channels = 0;     ///< rows: 1 to strip_rows
  std::uint8_t* scratch = nullptr;  ///< strip_rows times the bytes of a row of input and of one of output
};

/// Rows of `axis.input` pixels to rows of `axis.size` pixels.
using ColumnsPass = void (*)(const Resizer::Axis& axis, const RowStrip& strip);
/// One row of `bytes` values from `count` rows that lie `row_bytes` apart, weighted.
using RowsPass = void (*)(const std::int32_t* weights, Index count, const std::uint8_t* in, Index row_bytes,
                          Index bytes, std::uint8_t* out);

struct ResizeKernels {
  const char* name = nullptr;
  ColumnsPass columns = nullptr;
  RowsPass rows = nullptr;
};

void resize_columns_generic(const Resizer::Axis& axis, const RowStrip& strip);
void resize_rows_generic(const std::int32_t* weights, Index count, const std::uint8_t* in, Index row_bytes, Index bytes,
                         std::uint8_t* out);
void resize_columns_avx2(const Resizer::Axis& axis, const RowStrip& strip);
void resize_rows_avx2(const std::int32_t* weights, Index count, const std::uint8_t* in, Index row_bytes, Index bytes,
                      std::uint8_t* out);

void resize_columns_avx512(const Resizer::Axis& axis, const RowStrip& strip);
void resize_rows_avx512(const std::int32_t* weights, Index count, const std::uint8_t* in, Index row_bytes, Index bytes,
                        std::uint8_t* out);

/// 16 rows as columns, 16 bytes for each byte of a row: `axis.input` pixels to `axis.size` of them.
using WeighColumns = void (*)(const Resizer::Axis& axis, const std::uint8_t* in, std::uint8_t* out);
/// A ColumnsPass of vector kernels; needs AVX2. `weigh` is by channels, 1 to 4.
void resize_strip(const WeighColumns (&weigh)[4], const Resizer::Axis& axis, const RowStrip& strip);

/// Those that this CPU runs within the limit of max_cpu_isa(), the best last.
std::span<const ResizeKernels> resize_kernels();

}  // namespace convoy
