// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "run/supervisor.hpp"

namespace convoy {

/// Collective. `convoy train --dry-run`: prints the configuration as a file for --config and, as comments in it, what
/// it comes to: sizes, cost, memory, batches, rates and steps. Then it makes some steps
/// in a folder of its own, which it removes, and says how long the run would take (--dry-run-seconds).
Exit dry_run(Communicator& communicator, Supervisor& supervisor, const TrainConfig& config);

}  // namespace convoy
