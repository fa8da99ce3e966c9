// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "config/config.hpp"
#include "optim/schedule.hpp"
#include "train/moving_average.hpp"
#include "train/setup.hpp"

namespace convoy {

/// The numbers of each step's update: learning rate, options of the rule, decay of the moving average.
class Optimiser {
 public:
  /// Throws Error(usage) for schedules that can't be.
  Optimiser(const TrainConfig& config, const std::vector<TrainingPhase>& phases, Backend& backend,
            const MovingAverage& average);

  double rate(Index step) const;
  /// Gives the device the numbers of a step, before its first launch.
  void begin_step(Index step) const;

  std::optional<RateRamp> ramp;  ///< in place of the schedule
  Plateau plateau;               ///< the same on all ranks; goes into checkpoints and comes back with them

 private:
  const TrainConfig& config_;
  Backend& backend_;
  const MovingAverage& average_;
  Timeline timeline_;
  Schedule schedule_;
  OptionValues rule_values_;          ///< looked up by names once
  std::vector<double> rate_factors_;  ///< one per phase
};

}  // namespace convoy
