// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "train/observer.hpp"

namespace convoy {

struct TrainingJob;

/// Saves a checkpoint every so many steps, epochs or minutes.
class PeriodicSave final : public Observer {
 public:
  explicit PeriodicSave(TrainingJob& job) : job_(job) {}
  void step_done(LoopState& state) override;

 private:
  TrainingJob& job_;
};

}  // namespace convoy
