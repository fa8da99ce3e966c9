// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace convoy {

using Index = std::int64_t;

/// `count` elements from `begin` on. In a parameter block: floats.
struct Range {
  Index begin = 0, count = 0;
  Index end() const { return begin + count; }
  bool contains(Index i) const { return i >= begin && i < end(); }
  bool operator==(const Range&) const = default;
};

/// Rounds up to the 64 bytes on which every tensor of a block starts.
constexpr Index align_floats(Index floats) { return (floats + 15) / 16 * 16; }

enum class Precision : std::uint8_t { fp32, tf32, bf16, fp16 };

}  // namespace convoy
