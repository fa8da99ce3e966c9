// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "run/supervisor.hpp"
#include "train/observer.hpp"
#include "train/time_estimate.hpp"

namespace convoy {

struct TrainingJob;

/// An observer that needs some steps of a run.
class Trial : public Observer {
 public:
  /// Before the first step.
  virtual void begin(TrainingJob&) {}
  /// The job is over; its last checkpoint took so many seconds until it was durable.
  virtual void take(const TimeEstimate&, Index /*last_step*/, double /*checkpoint_seconds*/) {}
  /// The run whose time is estimated; null: the trial's own.
  virtual const TrainConfig* whole() const { return nullptr; }
  /// Whether a loss or gradient that is not finite is a result; else it ends the job with an error.
  virtual bool bears_divergence() const { return false; }
};

/// The configuration of a run without what outlasts it, what continues another, and what ends it early.
TrainConfig without_results(TrainConfig config);

/// Collective. Trains in a folder beside the run directory that is removed afterwards. Returns ok, or the
/// code with which all ranks should leave; throws if only this rank failed.
Exit run_trial(Communicator& communicator, Supervisor& supervisor, const TrainConfig& config, Trial& trial);

}  // namespace convoy
