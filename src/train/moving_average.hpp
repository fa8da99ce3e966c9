// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "engine/engine.hpp"
#include "sync/sync.hpp"
#include "train/job.hpp"

namespace convoy {

/// The exponential moving average of weights and running statistics (--ema-decay): A = decay A + (1 - decay) weights
/// after every so many steps. Training doesn't see it; validation, `evaluate` and `predict` take it. While the rate
/// warms up it is the weights, as torchvision has it, and it starts as the first weights. Every rank keeps it, the same
/// bits.
class MovingAverage {
 public:
  /// Allocates the set where it is on.
  MovingAverage(Engine& engine, Sync& sync, const TrainConfig& config, const Job& job);

  bool is_on() const { return set_.block != nullptr; }
  /// For StepParams, before the step.
  float decay(Index step) const;
  /// Collective. After Sync::step_done.
  void step_done(Index step);
  /// Collective. The model to validate: the average, and where it is off the weights, averaged over the replicas.
  const ParameterSet& validated();

  // Where it is on; the host waits. Blocks as SetLayout.
  void load(const std::vector<float>& block, Collectives& collectives);
  void download(std::vector<float>& block, Collectives& collectives) const;

 private:
  Engine& engine_;
  Sync& sync_;
  const EmaConfig& config_;
  const double warmup_epochs_;
  const Timeline& timeline_;
  ParameterSet set_;
  bool compute_copies_are_current_ = false;
};

}  // namespace convoy
