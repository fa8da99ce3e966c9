// SPDX-License-Identifier: Apache-2.0
#include "train/trial.hpp"

#include <unistd.h>

#include <filesystem>

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

}  // namespace

TrainConfig without_results(TrainConfig config) {
  config.output.tensorboard = false;
  config.checkpoint.resume.clear();
  config.max_steps = 0;
  config.target_accuracy = 0;
  config.patience = 0;
  config.time_limit = {};
  config.val_interval = 0;
  config.on_spike = OnSpike::off;
  config.sync.check_arithmetic = 0;
  config.output.exclude_slow = false;
  return config;
}

Exit run_trial(Communicator& communicator, Supervisor& supervisor, const TrainConfig& config, Trial& trial) {
  std::string folder;
  if (communicator.rank() == 0) folder = scratch_folder(config.output.folder);
  communicator.broadcast(folder, "name of the trial run's folder");
  log::set_level(log::Level::warn);  // its lines would look like a run's
  TrainConfig own = config;
  own.output.folder = folder;
  own.checkpoint.folder = folder + "/checkpoints";
  const auto clean = [&] {
    std::error_code none;
    if (communicator.rank() == 0) fs::remove_all(folder, none);
  };
  try {
    const Exit code = train(communicator, supervisor, own, &trial);
    communicator.barrier("end of the trial run");
    clean();
    return code;
  } catch (...) {
    clean();
    throw;
  }
}

}  // namespace convoy
