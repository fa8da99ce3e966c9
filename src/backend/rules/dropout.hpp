// SPDX-License-Identifier: Apache-2.0
// Which values a dropout keeps: a pure function of (seed, step, node, the sample's position in the epoch, element), so
// that backward needs no stored mask and neither batches, threads nor ranks change one.
#pragma once
#include <cstdint>

#include "core/mix_bits.hpp"
#include "core/portable.hpp"

namespace convoy {

/// Of one node in one step; `node`: NodeId.
CONVOY_HD inline std::uint64_t dropout_key(std::uint64_t seed, std::int64_t step, std::int64_t node) {
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15ULL, purpose = 0x64726f706f7574ULL;
  const std::uint64_t mixed = mix_bits(mix_bits(seed ^ purpose) + golden * static_cast<std::uint64_t>(step));
  return mix_bits(mixed + golden * static_cast<std::uint64_t>(node));
}

/// Of one sample. `position`: SampleSpec::position.
CONVOY_HD inline std::uint64_t dropout_sample_key(std::uint64_t node_key, std::int64_t position) {
  return mix_bits(node_key + 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(position));
}

struct DropoutRule {
  std::uint64_t threshold;  ///< of 2^32: below it a value is dropped
  float scale;              ///< of what is kept

  CONVOY_HD static DropoutRule of(float rate) {
    return {static_cast<std::uint64_t>(static_cast<double>(rate) * 4294967296.0),
            static_cast<float>(1 / (1 - static_cast<double>(rate)))};
  }
  /// 0 or scale. `element`: c h w of the sample's value, in the order of n c h w whatever the layout in memory.
  CONVOY_HD float factor(std::uint64_t sample_key, std::int64_t element) const {
    const std::uint64_t bits = mix_bits(sample_key + 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(element));
    return (bits >> 32) < threshold ? 0.0F : scale;
  }
};

}  // namespace convoy
