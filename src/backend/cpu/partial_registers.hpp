// SPDX-License-Identifier: Apache-2.0
// Loads and stores of vector registers, masked if a tensor ends within one. Each source has its own, since each is
// compiled for several instruction sets.
#pragma once
#include <immintrin.h>

#include "backend/cpu/registers.hpp"
#include "backend/cpu/vector_loops.hpp"

namespace convoy::cpu {

constexpr int width = register_lanes;

namespace {

#ifdef __AVX512F__
CONVOY_INLINE __mmask16 first(int64_t count) { return static_cast<__mmask16>((1U << count) - 1); }
CONVOY_INLINE Register read_some(const float* from, int64_t count) {
  return reinterpret_cast<Register>(_mm512_maskz_loadu_ps(first(count), from));
}
CONVOY_INLINE void write_some(float* to, Register v, int64_t count) {
  _mm512_mask_storeu_ps(to, first(count), reinterpret_cast<__m512>(v));
}
#else
CONVOY_INLINE __m256i first(int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
CONVOY_INLINE Register read_some(const float* from, int64_t count) {
  return reinterpret_cast<Register>(_mm256_maskload_ps(from, first(count)));
}
CONVOY_INLINE void write_some(float* to, Register v, int64_t count) {
  _mm256_maskstore_ps(to, first(count), reinterpret_cast<__m256>(v));
}
#endif
#ifdef __AVX512F__
template <bool partial>
CONVOY_INLINE Register read(const Bf16* from, int64_t count) {
  if constexpr (partial) return widen(reinterpret_cast<Halves>(_mm256_maskz_loadu_epi16(first(count), from)));
  return load<false>(from, 16);
}
template <bool partial>
CONVOY_INLINE void write(Bf16* to, Register v, int64_t count) {
  if constexpr (partial)
    _mm256_mask_storeu_epi16(to, first(count), reinterpret_cast<__m256i>(narrow(v)));
  else
    store<false>(to, v, 16);
}
#else
// The backend refuses bf16 without AVX-512; these keep the one source compiling.
template <bool partial>
CONVOY_INLINE Register read(const Bf16* from, int64_t count) {
  return load<true>(from, static_cast<int>(count < width ? count : width)).low;
}
template <bool partial>
CONVOY_INLINE void write(Bf16* to, Register v, int64_t count) {
  store<true>(to, {v, v}, static_cast<int>(count < width ? count : width));
}
#endif
/// `count`: elements that exist where partial, fewer than a register has; the others read as 0.
template <bool partial>
CONVOY_INLINE Register read(const float* from, int64_t count) {
  if constexpr (partial) return read_some(from, count);
  return read(from);
}
template <bool partial>
CONVOY_INLINE void write(float* to, Register v, int64_t count) {
  if constexpr (partial)
    write_some(to, v, count);
  else
    write(to, v);
}
/// For lambdas, after their parameters.
#define CONVOY_INLINED __attribute__((always_inline))
/// Calls visit(part, lanes of its register, partial?) for the registers of a block of `count` lanes.
template <class Visit>
CONVOY_INLINE void for_parts(int64_t count, Visit visit) {
  for (int part = 0; part < parts; ++part) {
    const int64_t rest = count - part * width;
    if (rest >= width)
      visit(part, rest, Flag<false>{});
    else if (rest > 0)
      visit(part, rest, Flag<true>{});
  }
}
CONVOY_INLINE int64_t lanes_from(int64_t channels, int64_t block) {
  const int64_t rest = channels - block * lanes;
  return rest < lanes ? rest : lanes;
}

}  // namespace
}  // namespace convoy::cpu
