// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "checkpoint/fence.hpp"
#include "comm/communicator.hpp"
#include "config/config.hpp"

namespace convoy {

/// Collective. Makes the run directory and its checkpoints folder (rank 0) and agrees on their names: --output-dir, or
/// runs/NAME-TIME. Throws Error(usage) on all ranks where it can't be written.
void make_run_folder(Communicator& communicator, TrainConfig& config);

/// A fresh run must not be mistaken for an older one in the same folder: its checkpoint files move to
/// FOLDER.old-N. Throws Error(usage).
void put_old_checkpoints_aside(const std::string& folder);

/// Rank 0: config.cfg, command.txt and environment.json (hosts, versions, build, seed): what it takes to repeat the
/// run.
void describe_run(const Communicator& communicator, const TrainConfig& config, const std::string& device,
                  const Fence& fence);

}  // namespace convoy
