// SPDX-License-Identifier: Apache-2.0
// The vector loops around the convolutions. One source (kernel_loops.hpp) is compiled for each instruction set into one
// table of functions. A unit of work is one image times one group of channels; every result depends only on its unit,
// so threads and tiles don't change bits. Plain types only, as in field.hpp.
#pragma once
#include <cstdint>

#include "backend/cpu/field.hpp"
#include "backend/rules/local_response.hpp"

namespace convoy::cpu {

enum class CurveShape : std::uint8_t { identity, rectifier, tanh };

/// out = curve(scale0 * first + shift0 [+ scale1 * second + shift1]). Null scale: the term is taken as it is; null
/// second: one term. Vectors have padded_channels.
struct EvaluateArgs {
  Field field;
  const void *first = nullptr, *second = nullptr;
  const float *scale0 = nullptr, *shift0 = nullptr, *scale1 = nullptr, *shift1 = nullptr;
  CurveShape curve = CurveShape::identity;
  float slope = 0;  ///< of the rectifier below 0
  void* out = nullptr;
};

/// Per image and channel: sum and sum of squares. Rows [image][padded_channels].
struct StatisticsArgs {
  Field field;
  const void* value = nullptr;
  float *sums = nullptr, *squares = nullptr;
};

/// A batch norm that receives the collected gradient g: products[image][channel] = sum g * (value - mean).
struct NormProducts {
  const void* value = nullptr;
  const float* mean = nullptr;
  float* products = nullptr;
};

/// The gradient of a value: out = curve'(output) * (a * gradient + b * self + d [+ second]). Null a: gradient as it is.
/// Null second: one term. Null output: curve' = 1. With norms, sums[image][channel] = sum out.
struct CollectArgs {
  Field field;
  const void *gradient = nullptr, *self = nullptr, *second = nullptr, *output = nullptr;
  const float *a = nullptr, *b = nullptr, *d = nullptr;
  CurveShape curve = CurveShape::identity;
  float slope = 0;
  void* out = nullptr;
  int norms = 0;
  float* sums = nullptr;
  NormProducts norm[2];
};

/// Max: `index` keeps r * kernel + s of the winner, laid out as y. Average: index is null.
struct PoolArgs {
  Field x, y;
  std::int64_t kernel = 2, stride = 2, pad = 0;
  bool count_padding = true;
  const void* from = nullptr;  ///< x forward, dy backward
  void* to = nullptr;          ///< y forward, dx backward
  std::uint16_t* index = nullptr;
};

/// y from x, or dx from x and dy. The window reaches at most one block of channels to either side.
struct LocalResponseArgs {
  Field field;
  LocalResponseRule rule;
  const void *x = nullptr, *dy = nullptr;  ///< no dy: forward
  void* to = nullptr;
};

/// Global average of x into rows of floats [image][channels], or its gradient back over all pixels.
struct GlobalPoolArgs {
  Field x;
  const void* from = nullptr;
  void* to = nullptr;
};

/// Same strides, other storage.
struct ConvertArgs {
  Field field;  ///< of `from`; `to` has the other storage
  const void* from = nullptr;
  void* to = nullptr;
};

struct KernelTable {
  const char* name;
  bool wide;  ///< made for AVX-512
  void (*evaluate)(const EvaluateArgs&, std::int64_t begin, std::int64_t end);
  void (*statistics)(const StatisticsArgs&, std::int64_t begin, std::int64_t end);
  void (*collect)(const CollectArgs&, std::int64_t begin, std::int64_t end);
  void (*pool_forward)(const PoolArgs&, std::int64_t begin, std::int64_t end);
  void (*pool_backward)(const PoolArgs&, std::int64_t begin, std::int64_t end);
  /// Units: images times rows of pixels.
  void (*local_response)(const LocalResponseArgs&, std::int64_t begin, std::int64_t end);
  void (*global_forward)(const GlobalPoolArgs&, std::int64_t begin, std::int64_t end);
  void (*global_backward)(const GlobalPoolArgs&, std::int64_t begin, std::int64_t end);
  void (*convert)(const ConvertArgs&, std::int64_t begin, std::int64_t end);
  /// to += from.
  void (*add)(float* to, const float* from, std::int64_t n);
  /// total[c] = sum over images of rows[image][c], in image order, for the channels [begin, end).
  void (*fold)(const float* rows, std::int64_t images, std::int64_t padded, double* total, std::int64_t begin,
               std::int64_t end);
  bool (*all_finite)(const float* values, std::int64_t n);
};

extern const KernelTable kernels_avx2, kernels_avx512, kernels_avx512_bf16;

/// Channel blocks a unit covers: neighbours in memory for nhwc, so that whole cache lines are used.
inline std::int64_t unit_blocks(const Field& field) { return field.blocked() ? 1 : 4; }
inline std::int64_t units_per_image(const Field& field) {
  return (field.blocks() + unit_blocks(field) - 1) / unit_blocks(field);
}

}  // namespace convoy::cpu
