// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "image/resize_kernels.hpp"

namespace convoy {
namespace {

constexpr std::int32_t half = 1 << (weight_bits - 1);

/// Four pixels as 16-bit pairs per channel: lane 0 has taps 0 and 1 (r r g g b b 0 0), lane 1 taps 2 and 3.
__m256i pair_up(const std::uint8_t* from) {
  const __m256i pixels = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  const __m256i places = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,  //
                                          6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
  return _mm256_shuffle_epi8(pixels, places);
}

/// 16-bit weights w0 w1 w2 w3 of a step to w0 w1 in every pair of lane 0, w2 w3 in every pair of lane 1.
__m256i spread(__m128i four) {
  const __m128i front = _mm_shuffle_epi32(four, 0x00), back = _mm_shuffle_epi32(four, 0x55);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(front), back, 1);
}

}  // namespace

void resize_columns_avx2(const Resizer::Axis& axis, const std::uint8_t* in, Index, std::uint8_t* out) {
  for (Index x = 0; x < axis.size; ++x) {
    const auto i = static_cast<std::size_t>(x);
    const std::int16_t* weights = axis.split_weights.data() + x * axis.taps * 2;
    const std::uint8_t* from = in + Index{axis.first[i]} * 3;
    __m256i low = _mm256_setzero_si256(), high = low;
    for (Index t = 0; t < axis.count[i]; t += taps_per_step) {
      const __m128i both = _mm_loadu_si128(reinterpret_cast<const __m128i*>(weights + t * 2));
      const __m256i pixels = pair_up(from + t * 3);
      low = _mm256_add_epi32(low, _mm256_madd_epi16(pixels, spread(both)));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(pixels, spread(_mm_srli_si128(both, 8))));
    }
    const __m256i wide = _mm256_add_epi32(low, _mm256_slli_epi32(high, low_bits));
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
    sum = _mm_srai_epi32(_mm_add_epi32(sum, _mm_set1_epi32(half)), weight_bits);
    const __m128i bytes = _mm_packus_epi16(_mm_packs_epi32(sum, sum), sum);
    const auto pixel = static_cast<std::uint32_t>(_mm_cvtsi128_si32(bytes));
    out[x * 3] = static_cast<std::uint8_t>(pixel);
    out[x * 3 + 1] = static_cast<std::uint8_t>(pixel >> 8);
    out[x * 3 + 2] = static_cast<std::uint8_t>(pixel >> 16);
  }
}

void resize_rows_avx2(const std::int32_t* weights, Index count, const std::uint8_t* in, Index row_bytes, Index bytes,
                      std::uint8_t* out) {
  Index i = 0;
  for (; i + 16 <= bytes; i += 16) {
    __m256i front = _mm256_set1_epi32(half), back = front;
    for (Index t = 0; t < count; ++t) {
      const auto* from = in + t * row_bytes + i;
      const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      const __m256i weight = _mm256_set1_epi32(weights[t]);
      front = _mm256_add_epi32(front, _mm256_mullo_epi32(_mm256_cvtepu8_epi32(values), weight));
      back = _mm256_add_epi32(back, _mm256_mullo_epi32(_mm256_cvtepu8_epi32(_mm_srli_si128(values, 8)), weight));
    }
    front = _mm256_srai_epi32(front, weight_bits);
    back = _mm256_srai_epi32(back, weight_bits);
    // Packing works within 128-bit lanes: put the quarters right afterwards.
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(front, back), 0xD8);
    const __m128i packed = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), packed);
  }
  if (i < bytes) resize_rows_generic(weights, count, in + i, row_bytes, bytes - i, out + i);
}

}  // namespace convoy
