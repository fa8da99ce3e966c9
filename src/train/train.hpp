// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "run/supervisor.hpp"

namespace convoy {

class Trial;

/// Collective. The whole of `convoy train`: set-up, epochs, evaluation, checkpoints. Returns the code all ranks leave
/// with; throws if only this rank failed. `trial`: the observer for which the job runs.
Exit train(Communicator& communicator, Supervisor& supervisor, const TrainConfig& config, Trial* trial = nullptr);

}  // namespace convoy
