// SPDX-License-Identifier: Apache-2.0
// Sixteen floats at a time: one register, or two where registers are narrower. bf16 is widened on load and rounded to
// nearest even on store.
#pragma once
#include <cstdint>
#include <cstring>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "backend/rules/activation.hpp"
#include "backend/rules/exponential.hpp"

namespace convoy::cpu {
namespace {

#define CONVOY_INLINE [[gnu::always_inline]] inline

struct Bf16 {
  std::uint16_t bits;
};
using Halves = std::uint16_t __attribute__((vector_size(32)));

#ifdef __AVX512F__

using Vector = float __attribute__((vector_size(64)));
using Integers = std::int32_t __attribute__((vector_size(64)));
using Unsigned = std::uint32_t __attribute__((vector_size(64)));

CONVOY_INLINE Vector splat(float value) { return Vector{} + value; }
CONVOY_INLINE Integers splat_integer(int value) { return Integers{} + value; }
CONVOY_INLINE Integers greater(Vector a, Vector b) { return a > b; }
CONVOY_INLINE Integers equal(Integers a, Integers b) { return a == b; }
CONVOY_INLINE Integers not_a_number(Vector v) { return v != v; }
template <class V>
CONVOY_INLINE V select(Integers mask, V yes, V no) {
  return mask ? yes : no;
}
// GCC makes several instructions of a conversion by __builtin_convertvector between registers of 32 and 64 bytes. The
// intrinsics without a mask begin with a register that GCC 12 warns of (PR 105593); a mask of ones costs nothing.
CONVOY_INLINE Integers from_halves(Halves v) {
  return reinterpret_cast<Integers>(_mm512_maskz_cvtepu16_epi32(0xffff, reinterpret_cast<__m256i>(v)));
}
CONVOY_INLINE Halves low_halves(Integers v) {
  return reinterpret_cast<Halves>(_mm512_maskz_cvtepi32_epi16(0xffff, reinterpret_cast<__m512i>(v)));
}
CONVOY_INLINE Vector widen(Halves bits) { return reinterpret_cast<Vector>(from_halves(bits) << 16); }
CONVOY_INLINE Halves narrow(Vector v) {
#ifdef __AVX512BF16__
  return reinterpret_cast<Halves>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(v)));
#else
  const Unsigned bits = reinterpret_cast<Unsigned>(v);
  const Unsigned rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16, nan = (bits >> 16) | 0x40;
  return low_halves(reinterpret_cast<Integers>(v == v ? rounded : nan));
#endif
}
CONVOY_INLINE Vector load_whole(const float* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
CONVOY_INLINE void store_whole(float* to, Vector v) { std::memcpy(to, &v, sizeof v); }
CONVOY_INLINE Vector two_to(Vector n) {
  return reinterpret_cast<Vector>((__builtin_convertvector(n, Integers) + 127) << 23);
}

#else

// GCC makes poor code of a 64-byte vector here, comparisons above all; of two 32-byte ones it makes good code.
struct Floats {
  using Part = float __attribute__((vector_size(32)));
};
struct Ints {
  using Part = std::int32_t __attribute__((vector_size(32)));
};
template <class Kind>
struct Pair {
  using Part = typename Kind::Part;
  Part low, high;

  CONVOY_INLINE friend Pair operator+(Pair a, Pair b) { return {a.low + b.low, a.high + b.high}; }
  CONVOY_INLINE friend Pair operator-(Pair a, Pair b) { return {a.low - b.low, a.high - b.high}; }
  CONVOY_INLINE friend Pair operator*(Pair a, Pair b) { return {a.low * b.low, a.high * b.high}; }
  CONVOY_INLINE friend Pair operator/(Pair a, Pair b) { return {a.low / b.low, a.high / b.high}; }
  CONVOY_INLINE friend Pair operator|(Pair a, Pair b) { return {a.low | b.low, a.high | b.high}; }
  CONVOY_INLINE Pair& operator+=(Pair b) { return *this = *this + b; }
  CONVOY_INLINE Pair& operator/=(Pair b) { return *this = *this / b; }
};
using Vector = Pair<Floats>;
using Integers = Pair<Ints>;

CONVOY_INLINE Vector splat(float value) { return {Vector::Part{} + value, Vector::Part{} + value}; }
CONVOY_INLINE Integers splat_integer(int value) { return {Integers::Part{} + value, Integers::Part{} + value}; }
CONVOY_INLINE Integers greater(Vector a, Vector b) { return {a.low > b.low, a.high > b.high}; }
CONVOY_INLINE Integers equal(Integers a, Integers b) { return {a.low == b.low, a.high == b.high}; }
CONVOY_INLINE Integers not_a_number(Vector v) { return {v.low != v.low, v.high != v.high}; }
template <class V>
CONVOY_INLINE V select(Integers mask, V yes, V no) {
  return {mask.low ? yes.low : no.low, mask.high ? yes.high : no.high};
}

CONVOY_INLINE Vector two_to(Vector n) {
  const auto power = [](Vector::Part part) {
    return reinterpret_cast<Vector::Part>((__builtin_convertvector(part, Integers::Part) + 127) << 23);
  };
  return {power(n.low), power(n.high)};
}

// Not memcpy: that goes by 16 bytes, and reading them as 32 waits for the stores.
using Unaligned = float __attribute__((vector_size(32), aligned(4), may_alias));
CONVOY_INLINE Vector load_whole(const float* from) {
  const auto* parts = reinterpret_cast<const Unaligned*>(from);
  return {parts[0], parts[1]};
}
CONVOY_INLINE void store_whole(float* to, Vector v) {
  auto* parts = reinterpret_cast<Unaligned*>(to);
  parts[0] = v.low;
  parts[1] = v.high;
}

// The backend refuses bf16 without AVX-512; these keep the one source compiling, element by element.
CONVOY_INLINE Vector widen(Halves bits) {
  std::uint32_t wide[16];
  for (int i = 0; i < 16; ++i) wide[i] = static_cast<std::uint32_t>(bits[i]) << 16;
  Vector v;
  std::memcpy(&v, wide, sizeof v);
  return v;
}
CONVOY_INLINE Halves narrow(Vector v) {
  std::uint32_t wide[16];
  std::memcpy(wide, &v, sizeof wide);
  Halves bits{};
  for (int i = 0; i < 16; ++i) {
    const std::uint32_t b = wide[i], rounded = (b + 0x7fff + ((b >> 16) & 1)) >> 16;
    bits[i] = static_cast<std::uint16_t>((b & 0x7fffffff) > 0x7f800000 ? (b >> 16) | 0x40 : rounded);
  }
  return bits;
}
CONVOY_INLINE Halves low_halves(Integers v) {
  std::int32_t wide[16];
  std::memcpy(wide, &v, sizeof wide);
  Halves bits{};
  for (int i = 0; i < 16; ++i) bits[i] = static_cast<std::uint16_t>(wide[i]);
  return bits;
}
CONVOY_INLINE Integers from_halves(Halves bits) {
  std::int32_t wide[16];
  for (int i = 0; i < 16; ++i) wide[i] = bits[i];
  Integers v;
  std::memcpy(&v, wide, sizeof v);
  return v;
}

#endif

/// `count`: elements that exist where partial; the others read as 0.
template <bool partial>
CONVOY_INLINE Vector load(const float* from, int count) {
  if constexpr (!partial) return load_whole(from);
  Vector v{};
  std::memcpy(&v, from, static_cast<std::size_t>(count) * 4);
  return v;
}
template <bool partial>
CONVOY_INLINE Vector load(const Bf16* from, int count) {
  Halves v{};
  std::memcpy(&v, from, partial ? static_cast<std::size_t>(count) * 2 : sizeof v);
  return widen(v);
}
template <bool partial>
CONVOY_INLINE void store(float* to, Vector v, int count) {
  if constexpr (partial)
    std::memcpy(to, &v, static_cast<std::size_t>(count) * 4);
  else
    store_whole(to, v);
}
template <bool partial>
CONVOY_INLINE void store(Bf16* to, Vector v, int count) {
  const Halves bits = narrow(v);
  std::memcpy(to, &bits, partial ? static_cast<std::size_t>(count) * 2 : sizeof bits);
}

template <bool partial>
CONVOY_INLINE Integers load_index(const std::uint16_t* from, int count) {
  Halves v{};
  std::memcpy(&v, from, partial ? static_cast<std::size_t>(count) * 2 : sizeof v);
  return from_halves(v);
}
template <bool partial>
CONVOY_INLINE void store_index(std::uint16_t* to, Integers v, int count) {
  const Halves bits = low_halves(v);
  std::memcpy(to, &bits, partial ? static_cast<std::size_t>(count) * 2 : sizeof bits);
}

/// The arithmetic in which rules/activation.hpp is written, sixteen floats at a time.
struct VectorMath {
  using Value = Vector;
  CONVOY_INLINE static Vector of(float value) { return splat(value); }
  CONVOY_INLINE static Vector where_greater(Vector a, Vector b, Vector yes, Vector no) {
    return select(greater(a, b), yes, no);
  }
  /// Element by element: only small networks use it.
  CONVOY_INLINE static Vector tanh(Vector x) {
    float values[16];
    store_whole(values, x);
    for (float& value : values) value = tanhf(value);
    return load_whole(values);
  }
  CONVOY_INLINE static Vector exp(Vector x) { return exp_by_polynomial<VectorMath>(x); }
  /// 2^n for whole n in -126 ... 0.
  CONVOY_INLINE static Vector two_to(Vector n) { return cpu::two_to(n); }
};

}  // namespace
}  // namespace convoy::cpu
