// SPDX-License-Identifier: Apache-2.0
// Sixteen floats at a time: loads, stores and the few functions that the loops need. bf16 is widened on load and
// rounded to nearest even on store.
#pragma once
#include <cstdint>
#include <cstring>
#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

#include "backend/rules/activation.hpp"

namespace convoy {
namespace {

using Vector = float __attribute__((vector_size(64)));
using Integers = std::int32_t __attribute__((vector_size(64)));
using Unsigned = std::uint32_t __attribute__((vector_size(64)));
using Halves = std::uint16_t __attribute__((vector_size(32)));

struct Bf16 {
  std::uint16_t bits;
};

[[gnu::always_inline]] inline Vector splat(float value) { return Vector{} + value; }
[[gnu::always_inline]] inline Integers splat_integer(int value) { return Integers{} + value; }

[[gnu::always_inline]] inline Vector widen(Halves bits) {
  return reinterpret_cast<Vector>(__builtin_convertvector(bits, Unsigned) << 16);
}

[[gnu::always_inline]] inline Halves narrow(Vector v) {
#ifdef __AVX512BF16__
  return reinterpret_cast<Halves>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(v)));
#else
  const Unsigned bits = reinterpret_cast<Unsigned>(v);
  const Unsigned rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16, nan = (bits >> 16) | 0x40;
  return __builtin_convertvector(v == v ? rounded : nan, Halves);
#endif
}

/// `count`: elements that exist where partial; the others read as 0.
template <bool partial>
[[gnu::always_inline]] inline Vector load(const float* from, int count) {
  Vector v{};
  std::memcpy(&v, from, partial ? static_cast<std::size_t>(count) * 4 : sizeof v);
  return v;
}
template <bool partial>
[[gnu::always_inline]] inline Vector load(const Bf16* from, int count) {
  Halves v{};
  std::memcpy(&v, from, partial ? static_cast<std::size_t>(count) * 2 : sizeof v);
  return widen(v);
}
template <bool partial>
[[gnu::always_inline]] inline void store(float* to, Vector v, int count) {
  std::memcpy(to, &v, partial ? static_cast<std::size_t>(count) * 4 : sizeof v);
}
template <bool partial>
[[gnu::always_inline]] inline void store(Bf16* to, Vector v, int count) {
  const Halves bits = narrow(v);
  std::memcpy(to, &bits, partial ? static_cast<std::size_t>(count) * 2 : sizeof bits);
}

template <bool partial>
[[gnu::always_inline]] inline Integers load_index(const std::uint16_t* from, int count) {
  Halves v{};
  std::memcpy(&v, from, partial ? static_cast<std::size_t>(count) * 2 : sizeof v);
  return __builtin_convertvector(v, Integers);
}
template <bool partial>
[[gnu::always_inline]] inline void store_index(std::uint16_t* to, Integers v, int count) {
  const Halves bits = __builtin_convertvector(v, Halves);
  std::memcpy(to, &bits, partial ? static_cast<std::size_t>(count) * 2 : sizeof bits);
}

/// Element by element: only small networks use it.
inline Vector tanh_of(Vector v) {
  for (int i = 0; i < 16; ++i) v[i] = TanhCurve{}.value(v[i]);
  return v;
}

}  // namespace
}  // namespace convoy
