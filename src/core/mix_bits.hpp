// SPDX-License-Identifier: Apache-2.0
// Kernels include this header, too.
#pragma once
#include <cstdint>

#include "core/portable.hpp"

namespace convoy {

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection with full avalanche.
CONVOY_HD constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace convoy
