// SPDX-License-Identifier: Apache-2.0
// g++ 12 sees uninitialised values in its own intrinsics, wherever they are used.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include "image/resize_kernels.hpp"

namespace convoy {
namespace {

constexpr std::int32_t half = 1 << (weight_bits - 1);

/// 16 bytes to 32-bit lanes.
__m512i widen(const std::uint8_t* from) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

/// 16 sums to 16 bytes. Weights aren't negative, so sums aren't either.
void round_sums(__m512i sums, std::uint8_t* to) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtusepi32_epi8(_mm512_srli_epi32(sums, weight_bits)));
}

/// Output pixels of 16 rows at once: lanes are rows, so that every weight is one broadcast.
template <int channels>
void weigh_columns(const Resizer::Axis& axis, const std::uint8_t* in, std::uint8_t* out) {
  for (Index x = 0; x < axis.size; ++x) {
    const auto i = static_cast<std::size_t>(x);
    const std::int32_t* weights = axis.weights.data() + x * axis.taps;
    const std::uint8_t* from = in + Index{axis.first[i]} * channels * 16;
    __m512i sums[channels];
    for (auto& sum : sums) sum = _mm512_set1_epi32(half);
    for (Index t = 0; t < axis.count[i]; ++t) {
      const __m512i weight = _mm512_set1_epi32(weights[t]);
      for (int c = 0; c < channels; ++c, from += 16) {
        sums[c] = _mm512_add_epi32(sums[c], _mm512_mullo_epi32(widen(from), weight));
      }
    }
    for (int c = 0; c < channels; ++c, out += 16) round_sums(sums[c], out);
  }
}

}  // namespace

void resize_columns_avx512(const Resizer::Axis& axis, const RowStrip& strip) {
  static constexpr WeighColumns weigh[] = {weigh_columns<1>, weigh_columns<2>, weigh_columns<3>, weigh_columns<4>};
  resize_strip(weigh, axis, strip);
}

void resize_rows_avx512(const std::int32_t* weights, Index count, const std::uint8_t* in, Index row_bytes, Index bytes,
                        std::uint8_t* out) {
  Index i = 0;
  for (; i + 64 <= bytes; i += 64) {
    __m512i sums[4];
    for (auto& sum : sums) sum = _mm512_set1_epi32(half);
    const std::uint8_t* from = in + i;
    for (Index t = 0; t < count; ++t, from += row_bytes) {
      const __m512i weight = _mm512_set1_epi32(weights[t]);
      for (int k = 0; k < 4; ++k) {
        sums[k] = _mm512_add_epi32(sums[k], _mm512_mullo_epi32(widen(from + 16 * k), weight));
      }
    }
    for (int k = 0; k < 4; ++k) round_sums(sums[k], out + i + 16 * k);
  }
  if (i < bytes) resize_rows_avx2(weights, count, in + i, row_bytes, bytes - i, out + i);
}

}  // namespace convoy
