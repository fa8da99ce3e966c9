// SPDX-License-Identifier: Apache-2.0
#include "train/trial_run.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace convoy {
namespace {

TrainConfig shortened(const TrainConfig& whole) {
  constexpr Index batches_of_validation = 2;
  TrainConfig config = without_results(whole);
  config.checkpoint.weights.clear();
  Index& batches = config.data.limit_val_batches;
  batches = batches > 0 ? std::min(batches, batches_of_validation) : batches_of_validation;
  return config;
}

}  // namespace

void TrialRun::step_done(LoopState& state) {
  if (std::exchange(first_step_is_done_, true)) return;
  constexpr double most = 100;  // after the first
  double seconds[1] = {seconds_since(step_began_)};
  communicator_.maximum(std::span<double>(seconds), "time of the first step");
  const double more = std::min(seconds_ / std::max(seconds[0], 1e-9), most);
  state.last_step = std::min(state.last_step, state.position.step + static_cast<Index>(more));
}

void TrialRun::take(const TimeEstimate& estimate, Index last_step, double seconds) {
  const Index first_step = estimate.work().first_step;
  time = estimate.at(first_step);
  start_up_seconds = estimate.start_up_seconds();
  checkpoint_seconds = seconds;
  steps = last_step - first_step;
}

Exit TrialRun::run() { return run_trial(communicator_, supervisor_, shortened(whole_), *this); }

}  // namespace convoy
