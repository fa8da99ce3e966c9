// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "checkpoint/fence.hpp"
#include "comm/communicator.hpp"
#include "config/config.hpp"

namespace convoy {

/// Collective. Makes the run directory and its checkpoints folder (rank 0) and agrees on their names: --output-dir, or
/// runs/NAME-TIME, with a number behind it where another start has that. Throws the same Error on all ranks:
/// data where it can't be written, usage where --resume auto knows no folder to look in.
void make_run_folder(Communicator& communicator, TrainConfig& config);

/// How to continue a run that stopped: the command, or the advice to resubmit the scheduler's job.
std::string how_to_continue(const TrainConfig& config, int ranks);

/// Rank 0: config.cfg, command.txt and environment.json (hosts, versions, build, seed): what it takes to repeat the
/// run.
void describe_run(const Communicator& communicator, const TrainConfig& config, const std::string& device,
                  const Fence& fence);

}  // namespace convoy
