// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include <algorithm>

#include "image/resize_kernels.hpp"

namespace convoy {
namespace {

constexpr std::int32_t half = 1 << (weight_bits - 1);

__m128i load16(const std::uint8_t* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
void store16(std::uint8_t* to, __m128i value) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value); }
/// Eight bytes to 32-bit lanes.
__m256i widen8(const std::uint8_t* from) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}

/// 16 x 16 bytes: four perfect shuffles of halves transpose them.
void transpose(__m128i (&m)[16]) {
  for (int stage = 0; stage < 4; ++stage) {
    __m128i shuffled[16];
    for (int i = 0; i < 8; ++i) {
      shuffled[2 * i] = _mm_unpacklo_epi8(m[i], m[i + 8]);
      shuffled[2 * i + 1] = _mm_unpackhi_epi8(m[i], m[i + 8]);
    }
    std::copy(std::begin(shuffled), std::end(shuffled), std::begin(m));
  }
}

/// 16 sums to 16 bytes.
__m128i round_sums(__m256i front, __m256i back) {
  front = _mm256_srai_epi32(front, weight_bits);
  back = _mm256_srai_epi32(back, weight_bits);
  // Packing works within 128-bit lanes: put the quarters right afterwards.
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(front, back), 0xD8);
  return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

/// Output pixels of 16 rows at once: lanes are rows, so that every weight is one broadcast.
template <int channels>
void weigh_columns(const Resizer::Axis& axis, const std::uint8_t* in, std::uint8_t* out) {
  for (Index x = 0; x < axis.size; ++x) {
    const auto i = static_cast<std::size_t>(x);
    const std::int32_t* weights = axis.weights.data() + x * axis.taps;
    const std::uint8_t* from = in + Index{axis.first[i]} * channels * 16;
    __m256i front[channels], back[channels];
    for (int c = 0; c < channels; ++c) front[c] = back[c] = _mm256_set1_epi32(half);
    for (Index t = 0; t < axis.count[i]; ++t) {
      const __m256i weight = _mm256_set1_epi32(weights[t]);
      for (int c = 0; c < channels; ++c, from += 16) {
        front[c] = _mm256_add_epi32(front[c], _mm256_mullo_epi32(widen8(from), weight));
        back[c] = _mm256_add_epi32(back[c], _mm256_mullo_epi32(widen8(from + 8), weight));
      }
    }
    for (int c = 0; c < channels; ++c, out += 16) store16(out, round_sums(front[c], back[c]));
  }
}

/// Rows of `bytes` to columns: to[16 * i + y] is byte i of row y; rows behind the last repeat it.
void gather_columns(const RowStrip& strip, Index bytes, std::uint8_t* to) {
  const std::uint8_t* row[strip_rows];
  for (Index y = 0; y < strip_rows; ++y) row[y] = strip.in + std::min(y, strip.rows - 1) * strip.in_row_bytes;
  __m128i m[16];
  Index i = 0;
  for (; i + 16 <= bytes; i += 16) {
    for (int y = 0; y < 16; ++y) m[y] = load16(row[y] + i);
    transpose(m);
    for (int k = 0; k < 16; ++k) store16(to + (i + k) * 16, m[k]);
  }
  for (; i < bytes; ++i) {
    for (Index y = 0; y < 16; ++y) to[i * 16 + y] = row[y][i];
  }
}

/// And back.
void scatter_columns(const std::uint8_t* from, Index bytes, const RowStrip& strip) {
  __m128i m[16];
  Index i = 0;
  for (; i + 16 <= bytes; i += 16) {
    for (int k = 0; k < 16; ++k) m[k] = load16(from + (i + k) * 16);
    transpose(m);
    for (Index y = 0; y < strip.rows; ++y) store16(strip.out + y * strip.out_row_bytes + i, m[y]);
  }
  for (; i < bytes; ++i) {
    for (Index y = 0; y < strip.rows; ++y) strip.out[y * strip.out_row_bytes + i] = from[i * 16 + y];
  }
}

}  // namespace

void resize_strip(const WeighColumns (&weigh)[4], const Resizer::Axis& axis, const RowStrip& strip) {
  const Index in_bytes = axis.input * strip.channels, out_bytes = axis.size * strip.channels;
  std::uint8_t *in = strip.scratch, *out = strip.scratch + strip_rows * in_bytes;
  gather_columns(strip, in_bytes, in);
  weigh[strip.channels - 1](axis, in, out);
  scatter_columns(out, out_bytes, strip);
}

void resize_columns_avx2(const Resizer::Axis& axis, const RowStrip& strip) {
  static constexpr WeighColumns weigh[] = {weigh_columns<1>, weigh_columns<2>, weigh_columns<3>, weigh_columns<4>};
  resize_strip(weigh, axis, strip);
}

void resize_rows_avx2(const std::int32_t* weights, Index count, const std::uint8_t* in, Index row_bytes, Index bytes,
                      std::uint8_t* out) {
  Index i = 0;
  for (; i + 32 <= bytes; i += 32) {
    __m256i sums[4];
    for (auto& sum : sums) sum = _mm256_set1_epi32(half);
    const std::uint8_t* from = in + i;
    for (Index t = 0; t < count; ++t, from += row_bytes) {
      const __m256i weight = _mm256_set1_epi32(weights[t]);
      for (int k = 0; k < 4; ++k) {
        sums[k] = _mm256_add_epi32(sums[k], _mm256_mullo_epi32(widen8(from + 8 * k), weight));
      }
    }
    store16(out + i, round_sums(sums[0], sums[1]));
    store16(out + i + 16, round_sums(sums[2], sums[3]));
  }
  if (i < bytes) resize_rows_generic(weights, count, in + i, row_bytes, bytes - i, out + i);
}

}  // namespace convoy
