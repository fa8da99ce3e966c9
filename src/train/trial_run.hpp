// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/clock.hpp"
#include "train/trial.hpp"

namespace convoy {

/// A short try of a run, to estimate its time: some steps, a validation of some batches, a checkpoint.
class TrialRun final : public Trial {
 public:
  /// `seconds`: for the steps; one step is made in any case. `whole`: the run itself.
  TrialRun(Communicator& communicator, Supervisor& supervisor, const TrainConfig& whole, double seconds)
      : communicator_(communicator), supervisor_(supervisor), whole_(whole), seconds_(seconds) {}

  /// Collective. As run_trial().
  Exit run();

  const TrainConfig* whole() const override { return &whole_; }
  void step_begins(const LoopState&) override { step_began_ = real_clock().now(); }
  void step_done(LoopState& state) override;
  void take(const TimeEstimate& estimate, Index last_step, double checkpoint_seconds) override;

  // What was found, on rank 0.
  TimeLeft time;  ///< of the run itself
  double start_up_seconds = 0, checkpoint_seconds = 0;
  Index steps = 0;  ///< that were made

 private:
  Communicator& communicator_;
  Supervisor& supervisor_;
  const TrainConfig& whole_;
  double seconds_;
  Instant step_began_;
  bool first_step_is_done_ = false;
};

}  // namespace convoy
