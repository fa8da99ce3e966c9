// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "train/observer.hpp"

namespace convoy {

class Evaluator;
struct TrainingJob;

/// Evaluates the averaged model every --val-interval epochs, keeps the best one, and looks for --target-accuracy.
class Validation final : public Observer {
 public:
  explicit Validation(TrainingJob& job) : job_(job) {}
  void step_done(LoopState& state) override;
  bool is_due(const LoopState& state) const;
  /// True where there is a validation split and this position has not been validated.
  bool is_missing(const LoopState& state) const;
  /// Collective. Leaves it undone where the ranks agree on a stop meanwhile.
  void run(LoopState& state);
  /// Why the validations so far, those of earlier jobs too, end the run before its last epoch; empty: they don't.
  std::string why_run_ends() const;

 private:
  /// A validation where only this job ends is told and no more: a run must not depend on where its jobs ended.
  bool counts(const LoopState& state) const;
  /// The evaluator of the epoch that has just ended or goes on; null: no validation split, or --skip-eval.
  Evaluator* evaluator(const LoopState& state) const;
  TrainingJob& job_;
};

}  // namespace convoy
