// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "backend/backend.hpp"

namespace convoy {

/// Floats of device state at the end of a parameter set.
constexpr Index device_state_floats = 16;

/// Where an optimiser keeps its things in a parameter set: values | slots * values | running statistics | device state.
SetLayout set_layout(const ParameterTable& table, const OptimiserSpec& spec);

/// The updater reads `current` (set_step's numbers) at each launch and adds to `counters`; both must outlive it. The
/// plan needn't.
std::unique_ptr<Updater> make_cpu_updater(const Plan& plan, const OptimiserSpec& spec, const StepParams& current,
                                          Counters& counters);

}  // namespace convoy
