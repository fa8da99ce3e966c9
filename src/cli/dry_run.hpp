// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/communicator.hpp"
#include "config/config.hpp"

namespace convoy {

/// Collective. `convoy train --dry-run`: prints the configuration as a file for --config and, as comments in it, what
/// it comes to: sizes, cost, memory, batches, rates and steps. Reads the data set's headers, loads and trains nothing.
Exit dry_run(Communicator& communicator, const TrainConfig& config);

}  // namespace convoy
