// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "run/supervisor.hpp"
#include "train/forecast.hpp"

namespace convoy {

/// A short try of a run, for its forecast: some steps, a validation of some batches, a checkpoint.
struct Rehearsal {
  double seconds = 10;                 ///< for the steps; one is made in any case
  const TrainConfig* whole = nullptr;  ///< the run itself

  // What it found, on rank 0.
  ForecastSpec spec;  ///< of the run itself
  Estimate estimate;
  double start_up_seconds = 0, checkpoint_seconds = 0;  ///< the latter until it is durable
  Index steps = 0;                                      ///< that were made
};

/// Collective. Runs in a folder beside the run directory that is removed afterwards. Returns ok, or the code with which
/// all ranks should leave; throws where only this rank failed.
Exit rehearse(Communicator& communicator, Supervisor& supervisor, const TrainConfig& config, Rehearsal& rehearsal);

}  // namespace convoy
