// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "run/supervisor.hpp"

namespace convoy {

class TrialRun;

/// Collective. The whole of `convoy train`: set-up, epochs, evaluation, checkpoints. Returns the code all ranks leave
/// with; throws where only this rank failed. `trial`: ends after some steps and says what it measured.
Exit train(Communicator& communicator, Supervisor& supervisor, const TrainConfig& config, TrialRun* trial = nullptr);

}  // namespace convoy
