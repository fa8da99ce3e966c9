// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/topology.hpp"
#include "image/resize_kernels.hpp"

namespace convoy {
namespace {

constexpr std::int32_t half = 1 << (weight_bits - 1);

std::uint8_t rounded(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> weight_bits, 0, 255)); }

}  // namespace

void resize_columns_generic(const Resizer::Axis& axis, const RowStrip& strip) {
  const Index channels = strip.channels;
  for (Index y = 0; y < strip.rows; ++y) {
    std::uint8_t* out = strip.out + y * strip.out_row_bytes;
    for (Index x = 0; x < axis.size; ++x) {
      const auto i = static_cast<std::size_t>(x);
      const std::int32_t* weights = axis.weights.data() + x * axis.taps;
      const std::uint8_t* from = strip.in + y * strip.in_row_bytes + Index{axis.first[i]} * channels;
      for (Index c = 0; c < channels; ++c) {
        std::int32_t sum = half;
        for (Index t = 0; t < axis.count[i]; ++t) sum += from[t * channels + c] * weights[t];
        *out++ = rounded(sum);
      }
    }
  }
}

void resize_rows_generic(const std::int32_t* weights, Index count, const std::uint8_t* in, Index row_bytes, Index bytes,
                         std::uint8_t* out) {
  for (Index i = 0; i < bytes; ++i) {
    std::int32_t sum = half;
    for (Index t = 0; t < count; ++t) sum += in[t * row_bytes + i] * weights[t];
    out[i] = rounded(sum);
  }
}

std::span<const ResizeKernels> resize_kernels() {
  static const std::vector<ResizeKernels> kernels = [] {
    std::vector<ResizeKernels> found{{"generic", resize_columns_generic, resize_rows_generic}};
    if (__builtin_cpu_supports("avx2")) found.push_back({"AVX2", resize_columns_avx2, resize_rows_avx2});
    const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
    if (wide && max_cpu_isa() >= CpuIsa::avx512_core) {
      found.push_back({"AVX-512", resize_columns_avx512, resize_rows_avx512});
    }
    return found;
  }();
  return kernels;
}

}  // namespace convoy
