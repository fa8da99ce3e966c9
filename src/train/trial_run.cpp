// SPDX-License-Identifier: Apache-2.0
#include "train/trial_run.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "train/train.hpp"

namespace convoy {
namespace {

namespace fs = std::filesystem;

/// In the nearest folder above the run directory that is there: the file system is that of the run.
std::string scratch_folder(const std::string& output) {
  fs::path above = output.empty() ? fs::path("runs") : fs::path(output);
  std::error_code none;
  while (!above.empty() && !fs::is_directory(above, none)) above = above.parent_path();
  if (above.empty()) above = ".";
  return (above / fmt::format(".trial-run-{}", getpid())).string();
}

/// The run without what outlasts it.
TrainConfig shortened(TrainConfig config, const std::string& folder) {
  constexpr Index batches_of_validation = 2;
  config.output.folder = folder;
  config.output.tensorboard = false;
  config.checkpoint.folder = folder + "/checkpoints";
  config.checkpoint.resume.clear();
  config.checkpoint.weights.clear();
  config.max_steps = 0;
  config.target_accuracy = 0;
  config.patience = 0;
  config.time_limit = {};
  config.val_interval = 0;
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

Exit TrialRun::run() {
  std::string folder;
  if (communicator_.rank() == 0) folder = scratch_folder(whole_.output.folder);
  communicator_.broadcast(folder, "name of the trial run's folder");
  log::set_level(log::Level::warn);  // its lines would look like a run's
  const auto clean = [&] {
    std::error_code none;
    if (communicator_.rank() == 0) fs::remove_all(folder, none);
  };
  try {
    const Exit code = train(communicator_, supervisor_, shortened(whole_, folder), this);
    communicator_.barrier("end of the trial run");
    clean();
    return code;
  } catch (...) {
    clean();
    throw;
  }
}

}  // namespace convoy
