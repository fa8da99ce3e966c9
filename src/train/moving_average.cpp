// SPDX-License-Identifier: Apache-2.0
#include "train/moving_average.hpp"

#include <algorithm>
#include <cmath>

namespace convoy {

MovingAverage::MovingAverage(Engine& engine, Sync& sync, const TrainConfig& config, const JobShape& job)
    : engine_(engine),
      sync_(sync),
      config_(config.ema),
      lookahead_(config.lookahead),
      warmup_epochs_(config.optimiser.schedule.warmup_epochs),
      timeline_(job.timeline),
      total_steps_(job.total_steps) {
  if (config.average_decay() == 0) return;
  const Index count = engine.layout().count();
  set_ = {engine.backend().allocate(count), count};
}

float MovingAverage::decay(Index step) const {
  if (!looks_ahead()) return timeline_.epochs(step) < warmup_epochs_ ? 0.0F : static_cast<float>(config_.decay);
  const double part = std::min(1.0, static_cast<double>(step + 1) / static_cast<double>(total_steps_));
  // 1 - keep must be exact, too: training goes on from the blend, which else grows or shrinks the weights each time.
  const auto rest = static_cast<float>(1 - (1 - lookahead_.alpha) * std::pow(part, lookahead_.power));
  return 1 - rest;
}

void MovingAverage::step_done(Index step) {
  if (!is_on()) return;
  const bool due = (step + 1) % (looks_ahead() ? lookahead_.steps : config_.steps) == 0;
  // The slow weights are the model of the run: they take in its last steps, too.
  const bool ends = looks_ahead() && step + 1 == total_steps_;
  if (!due && !ends) return;
  engine_.backend().blend(set_, sync_.averaged_weights());
  compute_copies_are_current_ = false;
  if (looks_ahead() && (due || sync_.replicas_are_equal())) sync_.adopt(set_);
}

const ParameterSet& MovingAverage::validated() {
  if (!is_on()) return sync_.averaged();
  if (!compute_copies_are_current_) engine_.backend().refresh(set_);
  compute_copies_are_current_ = true;
  return set_;
}

const char* MovingAverage::of_it() const {
  if (!is_on()) return "";
  return looks_ahead() ? " of the slow weights" : " of the moving average";
}

void MovingAverage::load(const std::vector<float>& block, Collectives& collectives) {
  engine_.upload(set_, block, collectives);
  compute_copies_are_current_ = true;
}

void MovingAverage::download(std::vector<float>& block, Collectives& collectives) const {
  engine_.download(set_, block, collectives);
}

}  // namespace convoy
