// SPDX-License-Identifier: Apache-2.0
#include "train/optimiser.hpp"

#include <algorithm>
#include <cmath>

namespace convoy {

Optimiser::Optimiser(const TrainConfig& config, const std::vector<TrainingPhase>& phases, Backend& backend,
                     const MovingAverage& average)
    : config_(config),
      backend_(backend),
      average_(average),
      timeline_(phases.front().job.timeline),
      schedule_(schedule_of(config, phases.front().job.peak_rate), phases.front().job.steps_per_epoch),
      rule_values_(config.optimiser.rule_values()),
      rate_factors_(rate_factors(phases)) {}

double Optimiser::rate(Index step) const {
  if (ramp) return ramp->rate(step);
  const double rate = schedule_.rate(timeline_.even_step(step));
  const ScheduleSpec& spec = config_.optimiser.schedule;
  const double least = std::min(spec.min_rate, rate);
  const double left = plateau.cuts > 0 ? std::max(rate * std::pow(spec.factor, plateau.cuts), least) : rate;
  return left * rate_factors_[timeline_.phase(timeline_.epoch_of(step))];
}

void Optimiser::begin_step(Index step) const {
  backend_.set_step({.learning_rate = static_cast<float>(rate(step)),
                     .ema_decay = average_.decay(step),
                     .seed = config_.seed,
                     .step = step,
                     .options = rule_values_});
}

}  // namespace convoy
