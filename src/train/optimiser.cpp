// SPDX-License-Identifier: Apache-2.0
#include "train/optimiser.hpp"

namespace convoy {

Optimiser::Optimiser(const TrainConfig& config, const std::vector<TrainingPhase>& phases, Backend& backend,
                     const MovingAverage& average)
    : config_(config),
      backend_(backend),
      average_(average),
      timeline_(phases.front().job.timeline),
      schedule_(schedule_of(config, phases.front().job.peak_rate), phases.front().job.steps_per_epoch),
      rate_factors_(rate_factors(phases)) {}

double Optimiser::rate(Index step) const {
  return schedule_.rate(timeline_.even_step(step)) * rate_factors_[timeline_.phase(timeline_.epoch_of(step))];
}

void Optimiser::begin_step(Index step) const {
  backend_.set_step({.learning_rate = static_cast<float>(rate(step)),
                     .ema_decay = average_.decay(step),
                     .seed = config_.seed,
                     .step = step,
                     .options = config_.optimiser.rule_values()});
}

}  // namespace convoy
