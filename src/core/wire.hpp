// SPDX-License-Identifier: Apache-2.0
// Formats in which sums travel between ranks. The formulas are integer arithmetic, or float operations that are exact,
// so that every device and compiler makes the same bits. Kernels include this header, too.
#pragma once
#include <cstdint>
#include <cstring>

#include "core/portable.hpp"

namespace convoy {

/// bf16: 8 bits of significand, the range of fp32. fp16: 11 bits; beyond 65504 it holds 65504, below 6e-5 it loses
/// digits, below 3e-8 all.
enum class Wire : std::uint8_t { fp32, bf16, fp16 };

constexpr std::int64_t bytes_of(Wire wire) { return wire == Wire::fp32 ? 4 : 2; }
constexpr const char* name_of(Wire wire) { return wire == Wire::fp32 ? "fp32" : wire == Wire::bf16 ? "bf16" : "fp16"; }

CONVOY_FORMULA std::uint32_t bits_of_float(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
CONVOY_FORMULA float float_of_bits(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// The nearest bf16, ties to even; NaN stays one.
CONVOY_FORMULA std::uint16_t to_bf16(float value) {
  const std::uint32_t bits = bits_of_float(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16, quiet = (bits >> 16) | 0x40U;
  return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded);
}
CONVOY_FORMULA float from_bf16(std::uint16_t value) { return float_of_bits(static_cast<std::uint32_t>(value) << 16); }

/// The nearest fp16, ties to even. A finite value that is too large becomes the largest: nobody would notice an
/// infinite sum, since the flags of non-finite values are set before it. Infinity and NaN stay.
CONVOY_FORMULA std::uint16_t to_fp16(float value) {
  const std::uint32_t bits = bits_of_float(value), sign = (bits >> 16) & 0x8000U, magnitude = bits & 0x7fffffffU;
  const std::uint32_t normal = (magnitude + 0xfffU + ((magnitude >> 13) & 1U) - (112U << 23)) >> 13;
  // Beside 0.5 a float's last bit is 2^-24, which is also that of small halves: the addition rounds.
  const std::uint32_t small = bits_of_float(float_of_bits(magnitude) + 0.5F) - 0x3f000000U;
  const std::uint32_t infinite = magnitude > 0x7f800000U ? 0x7e00U : 0x7c00U;
  const std::uint32_t large = magnitude >= 0x7f800000U ? infinite : 0x7bffU;
  const std::uint32_t finite = magnitude < 0x38800000U ? small : normal;
  return static_cast<std::uint16_t>(sign | (magnitude >= 0x477ff000U ? large : finite));
}
CONVOY_FORMULA float from_fp16(std::uint16_t value) {
  const std::uint32_t sign = (value & 0x8000U) << 16, magnitude = (value & 0x7fffU) << 13,
                      exponent = magnitude & 0x0f800000U;
  const float small = float_of_bits(magnitude + (113U << 23)) - float_of_bits(113U << 23);
  const float normal = float_of_bits(magnitude + (exponent == 0x0f800000U ? 224U << 23 : 112U << 23));
  return float_of_bits(sign | bits_of_float(exponent == 0 ? small : normal));
}

CONVOY_FORMULA std::uint16_t narrowed(float value, Wire wire) {
  return wire == Wire::fp16 ? to_fp16(value) : to_bf16(value);
}
CONVOY_FORMULA float widened(std::uint16_t value, Wire wire) {
  return wire == Wire::fp16 ? from_fp16(value) : from_bf16(value);
}

// Loops of the host. `wire` is bf16 or fp16.

template <class To, class From, class Formula>
void convert(To* to, const From* from, std::int64_t n, Formula formula) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = formula(from[i]);
}
inline void narrow(std::uint16_t* to, const float* from, std::int64_t n, Wire wire) {
  if (wire == Wire::fp16)
    convert(to, from, n, [](float value) { return to_fp16(value); });
  else
    convert(to, from, n, [](float value) { return to_bf16(value); });
}
inline void widen(float* to, const std::uint16_t* from, std::int64_t n, Wire wire) {
  if (wire == Wire::fp16)
    convert(to, from, n, [](std::uint16_t value) { return from_fp16(value); });
  else
    convert(to, from, n, [](std::uint16_t value) { return from_bf16(value); });
}
/// To what the wire can hold.
inline void round_to(float* values, std::int64_t n, Wire wire) {
  if (wire == Wire::fp16)
    convert(values, values, n, [](float value) { return from_fp16(to_fp16(value)); });
  else
    convert(values, values, n, [](float value) { return from_bf16(to_bf16(value)); });
}

}  // namespace convoy
