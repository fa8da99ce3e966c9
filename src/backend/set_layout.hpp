// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/backend.hpp"
#include "backend/rules/update.hpp"

namespace convoy {

/// Floats of device state at the end of a parameter set.
constexpr Index device_state_floats = 16;

/// Where an optimiser keeps its things in a parameter set, on every backend: values | slots * values | running
/// statistics | device state.
inline SetLayout set_layout(const ParameterTable& table, const OptimiserSpec& spec) {
  SetLayout layout;
  layout.slots = spec.rule == Rule::sgd ? SgdRule::slots : MomentumRule::slots;
  layout.values = {0, table.parameters.count};
  layout.optimiser = {align_floats(layout.values.end()), layout.slots * table.parameters.count};
  layout.statistics = {align_floats(layout.optimiser.end()), table.statistics.count};
  layout.state = {align_floats(layout.statistics.end()), device_state_floats};
  return layout;
}

}  // namespace convoy
