// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "train/observer.hpp"

namespace convoy {

struct TrainingJob;

/// Rank 0 summarises its parameters and gradients every so many steps (--monitor).
class TensorMonitor final : public Observer {
 public:
  explicit TensorMonitor(TrainingJob& job) : job_(job) {}
  void step_done(LoopState& state) override;

 private:
  TrainingJob& job_;
};

}  // namespace convoy
