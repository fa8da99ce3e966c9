// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "engine/engine.hpp"
#include "sync/sync.hpp"
#include "train/job.hpp"

namespace convoy {

/// The average of weights and running statistics that validation, `evaluate` and `predict` take:
/// A = decay A + (1 - decay) weights after every so many steps. Every rank keeps it, the same bits.
///
/// --ema-decay: training doesn't see it. While the rate warms up it is the weights, as torchvision has it, and it
/// starts as the first weights.
///
/// --lookahead-steps: the weights then return to it, and the optimiser goes on from there with its state (Zhang et al.
/// 2019, arXiv 1907.08610), also after the last step of the run. With a power, and with the running statistics, as
/// Jordan 2024 (arXiv 2404.00498) has it.
class MovingAverage {
 public:
  /// Allocates the set where it is on.
  MovingAverage(Engine& engine, Sync& sync, const TrainConfig& config, const JobShape& job);

  bool is_on() const { return set_.block != nullptr; }
  /// For StepParams, before the step.
  float decay(Index step) const;
  /// Collective. After Sync::step_done.
  void step_done(Index step);
  /// Collective. The model to validate: the average, and where it is off the weights, averaged over the replicas.
  const ParameterSet& validated();
  /// ` of the moving average`, for texts; empty if it is off.
  const char* of_it() const;

  // Where it is on; the host waits. Blocks as SetLayout.
  void load(const std::vector<float>& block, Collectives& collectives);
  void download(std::vector<float>& block, Collectives& collectives) const;

 private:
  bool looks_ahead() const { return lookahead_.steps > 0; }

  Engine& engine_;
  Sync& sync_;
  const EmaConfig& config_;
  const LookaheadConfig& lookahead_;
  const double warmup_epochs_;
  const Timeline& timeline_;
  const Index total_steps_;
  ParameterSet set_;
  bool compute_copies_are_current_ = false;
};

}  // namespace convoy
