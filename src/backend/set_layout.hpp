// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>

#include "backend/backend.hpp"

namespace convoy {

/// Where an optimiser with these slots keeps its things in a parameter set, on every backend: values | slots * values |
/// running statistics | device state. No slots: a set that nobody trains.
inline SetLayout set_layout(const ParameterTable& table, std::span<const char* const> slots) {
  SetLayout layout;
  layout.slots = slots;
  layout.values = {0, table.parameters.count};
  layout.trained = {0, table.trained_floats()};
  layout.optimiser = {align_floats(layout.values.end()),
                      static_cast<Index>(layout.slots.size()) * layout.trained.count};
  layout.statistics = {align_floats(layout.optimiser.end()), table.running_floats()};
  layout.moving = {layout.statistics.begin, table.statistics.count};
  layout.state = {align_floats(layout.statistics.end()), device_state_floats};
  return layout;
}

/// The slots of a rule, and one behind them that the rule does not know.
template <class Rule>
std::span<const char* const> slots_with_correction() {
  static constexpr auto all = [] {
    std::array<const char*, Rule::slots.size() + 1> names{};
    std::copy(Rule::slots.begin(), Rule::slots.end(), names.begin());
    names.back() = "correction";
    return names;
  }();
  return all;
}

inline SetLayout set_layout(const ParameterTable& table, const OptimiserSpec& spec) {
  return set_layout(table, with_optimiser(spec.rule, [&](auto rule) -> std::span<const char* const> {
                      if (spec.keeps_correction) return slots_with_correction<decltype(rule)>();
                      return decltype(rule)::slots;
                    }));
}

/// The state of local SGD's outer optimiser: two blocks, each laid out as SetLayout::trained.
struct OuterLayout {
  Range anchor;    ///< the weights after the last average
  Range momentum;  ///< of the changes from one average to the next
  Index count() const { return momentum.end(); }
};
inline OuterLayout outer_layout(const SetLayout& layout) {
  return {.anchor = layout.trained, .momentum = {align_floats(layout.trained.end()), layout.trained.count}};
}

/// Where the last parts of a set of `count` floats lie. Programs find them by the size of a set alone, since they don't
/// know the optimiser's slots.
struct SetEnd {
  Range statistics, state;
  DeviceState* device_state(float* block) const { return reinterpret_cast<DeviceState*>(block + state.begin); }
};
inline SetEnd set_end(Index count, Index statistics) {
  const Range state{count - device_state_floats, device_state_floats};
  return {.statistics = {state.begin - align_floats(statistics), statistics}, .state = state};
}

}  // namespace convoy
