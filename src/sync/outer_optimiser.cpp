// SPDX-License-Identifier: Apache-2.0
#include "sync/outer_optimiser.hpp"

#include <algorithm>

namespace convoy {
namespace {

/// 1 MB: small enough that a CPU's caches hold a piece of all blocks, large enough that a GPU doesn't wait for
/// launches.
constexpr Index piece_floats = 1 << 18;

}  // namespace

Index change_floats(const SetLayout& layout) { return std::min(piece_floats, layout.trained.count); }

OuterOptimiser::OuterOptimiser(const OuterSpec& spec, const SyncParts& parts)
    : spec_(spec),
      backend_(parts.backend),
      values_(parts.layout.trained),
      layout_(outer_layout(parts.layout)),
      state_{parts.backend.allocate(layout_.count()), layout_.count()},
      change_(parts.backend.allocate(change_floats(parts.layout))) {}

void OuterOptimiser::step(const ParameterSet& average) {
  if (!spec_.is_on()) return follow(average);
  const auto rate = static_cast<float>(spec_.rate), momentum = static_cast<float>(spec_.momentum);
  for (Index begin = 0; begin < values_.count; begin += piece_floats) {
    const Index count = std::min(piece_floats, values_.count - begin);
    float *values = average.block + values_.begin + begin, *anchor = state_.block + layout_.anchor.begin + begin,
          *velocity = state_.block + layout_.momentum.begin + begin;
    backend_.copy(change_, values, count, -1.0F);
    backend_.add(change_, anchor, count);
    backend_.copy(velocity, velocity, count, momentum);
    backend_.add(velocity, change_, count);
    if (spec_.rule == OuterRule::nesterov) {
      backend_.copy(values, velocity, count, momentum);
      backend_.add(values, change_, count);
      backend_.copy(values, values, count, -rate);
    } else {
      backend_.copy(values, velocity, count, -rate);
    }
    backend_.add(values, anchor, count);
    backend_.copy(anchor, values, count, 1.0F);
  }
}

void OuterOptimiser::follow(const ParameterSet& average) {
  backend_.copy(state_.block + layout_.anchor.begin, average.block + values_.begin, values_.count, 1.0F);
}

}  // namespace convoy
