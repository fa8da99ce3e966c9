// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "train/observer.hpp"

namespace convoy {

struct TrainingJob;

/// Compares digests of the weights between ranks and replicas, where they have to be the same (--check-weights).
class WeightCheck final : public Observer {
 public:
  explicit WeightCheck(TrainingJob& job) : job_(job) {}
  void step_done(LoopState& state) override;

 private:
  TrainingJob& job_;
};

}  // namespace convoy
