// SPDX-License-Identifier: Apache-2.0
// A double on its way through a sum of floats over ranks. Synchronised batch norm exchanges sum x and sum x^2, whose
// difference is the variance: digits that floats don't have. So a value travels in three parts: multiples of 2^-11 and
// of 2^-23 of its leading bit, and the rest. Where the values of up to 2^10 ranks have the same size within a factor of
// 4, the sums of the first two are exact in float, and the total is good to 2^-39; where they differ by more, the
// variance is no small difference.
#pragma once
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "core/portable.hpp"

namespace convoy {

constexpr int exchanged_parts = 3;

/// Writes value as out[0] + out[stride] + out[2 * stride].
CONVOY_HD inline void write_parts(double value, float* out, std::int64_t stride) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits &= 0x7ff0000000000000ULL;
  double leading;  // infinite where value is not finite, and so are the parts, or not numbers
  std::memcpy(&leading, &bits, sizeof leading);
  // Adding 1.5 * 2^52 of a unit and taking it away rounds to multiples of the unit.
  for (const double shift : {leading * (1.5 * 0x1p41), leading * (1.5 * 0x1p29)}) {
    const double rounded = (value + shift) - shift;
    *out = static_cast<float>(rounded);
    out += stride;
    value -= rounded;
  }
  *out = static_cast<float>(value);
}

CONVOY_HD inline double read_parts(const float* parts, std::int64_t stride) {
  double value = 0;
  for (int part = 0; part < exchanged_parts; ++part) value += static_cast<double>(parts[part * stride]);
  return value;
}

}  // namespace convoy
