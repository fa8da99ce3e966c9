// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/step_vote.hpp"
#include "train/observer.hpp"

namespace convoy {

struct TrainingJob;

/// After every step, and before every batch of an evaluation, the ranks vote on stops and saves; the result is known
/// one vote later.
class StopVote final : public Observer {
 public:
  explicit StopVote(TrainingJob& job) : job_(job) {}
  void step_done(LoopState& state) override;
  /// Collective. True: all ranks stop.
  bool agree(LoopState& state);

 private:
  StepVote own_vote(LoopState& state) const;
  TrainingJob& job_;
};

}  // namespace convoy
