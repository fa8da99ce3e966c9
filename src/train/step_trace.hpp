// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "train/observer.hpp"

namespace convoy {

struct TrainingJob;

/// --trace-steps A:B: keeps what the ranks do in these steps, and writes it to trace.json in the run directory. The
/// last of the observers, so that the others' work belongs to the step.
class StepTrace final : public Observer {
 public:
  explicit StepTrace(TrainingJob& job) : job_(job) {}

  /// Collective. Before the first step; `state`: where it stands.
  void start(const LoopState& state);
  /// Collective.
  void step_done(LoopState& state) override;
  /// The run is over: warns if it made none of the steps of the trace.
  void end() const;

 private:
  bool is_wanted() const;
  /// Collective. Rank 0 writes the events of all ranks.
  void write(Index last_step);

  TrainingJob& job_;
  Index first_step_ = 0;  ///< of the trace; 0: it has not begun
};

}  // namespace convoy
