// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "core/hash.hpp"
#include "core/types.hpp"

namespace convoy {

/// What makes two launches the same for Backend::replay: the program (by training phase and samples), the replica whose
/// slots they use, and the stage.
struct ReplayKey {
  static constexpr std::uint64_t all_stages = ~std::uint64_t{0};

  std::uint64_t phase = 0;
  Index samples = 0;
  int replica = -1;
  std::uint64_t stage = all_stages;

  ReplayKey of_stage(std::uint64_t number) const { return {phase, samples, replica, number}; }
  std::uint64_t hash() const {
    std::uint64_t hash = 0;
    for (const std::uint64_t part :
         {phase, static_cast<std::uint64_t>(samples), static_cast<std::uint64_t>(replica), stage})
      hash = mix_bits(hash + part + 0x9e3779b97f4a7c15ULL);
    return hash;
  }
};

}  // namespace convoy
