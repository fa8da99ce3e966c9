// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "backend/backend.hpp"
#include "backend/set_layout.hpp"

namespace convoy::cpu {

/// The updater reads `current` (set_step's numbers) at each launch and adds to `counters`; both must outlive it. The
/// plan needn't.
std::unique_ptr<Updater> make_updater(const Plan& plan, const OptimiserSpec& spec, const StepParams& current,
                                      Counters& counters);

}  // namespace convoy::cpu
