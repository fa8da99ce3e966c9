// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "run/run_state.hpp"
#include "train/observer.hpp"

namespace convoy {

struct TrainingJob;

/// Tells the watchdog and, on rank 0, state.json what the run is doing.
class RunReport final : public Observer {
 public:
  explicit RunReport(const TrainingJob& job) : job_(job) {}

  void step_begins(const LoopState& state) override;
  /// state.json says this from now on.
  void tell(RunStage stage, const LoopState& state) const;
  /// Says that this job was to end before the run does.
  void tell_limit(const LoopState& state) const;

 private:
  const TrainingJob& job_;
};

}  // namespace convoy
