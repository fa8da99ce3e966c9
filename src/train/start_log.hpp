// SPDX-License-Identifier: Apache-2.0
// What the log of a run begins with.
#pragma once
#include "engine/placement.hpp"

namespace convoy {

struct TrainingJob;

/// The table of the ranks, and what about it looks like an accident.
void log_placement(const JobPlacement& placement);
/// Network, data, policy and devices, and on rank 0 the record of the start in metrics and state.json.
void log_start(const TrainingJob& job);

}  // namespace convoy
