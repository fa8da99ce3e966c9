// SPDX-License-Identifier: Apache-2.0
#include "train/rehearsal.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/log.hpp"
#include "train/train.hpp"
#include "train/trainer.hpp"

namespace convoy {
namespace {

namespace fs = std::filesystem;
constexpr Index batches_of_validation = 2;

/// In the nearest folder above the run directory that is there: the file system is that of the run.
std::string scratch_folder(const std::string& output) {
  fs::path above = output.empty() ? fs::path("runs") : fs::path(output);
  std::error_code none;
  while (!above.empty() && !fs::is_directory(above, none)) above = above.parent_path();
  if (above.empty()) above = ".";
  return (above / fmt::format(".rehearsal-{}", getpid())).string();
}

TrainConfig rehearsed(TrainConfig config, const std::string& folder) {
  config.output.folder = folder;
  config.output.tensorboard = false;
  config.checkpoint.folder = folder + "/checkpoints";
  config.checkpoint.resume.clear();
  config.checkpoint.weights.clear();
  config.max_steps = 0;
  config.target_accuracy = 0;
  config.time_limit = {};
  config.val_interval = 0;
  Index& batches = config.data.limit_val_batches;
  batches = batches > 0 ? std::min(batches, batches_of_validation) : batches_of_validation;
  return config;
}

}  // namespace

void Trainer::limit_rehearsal(double step_seconds) {
  constexpr double most = 100;  // after the first
  double seconds[1] = {step_seconds};
  at_.communicator.maximum(std::span<double>(seconds), "time of the first step");
  const double more = std::min(at_.rehearsal->seconds / std::max(seconds[0], 1e-9), most);
  last_ = std::min(last_, position_.step + static_cast<Index>(more));
}

void Trainer::report_rehearsal(double checkpoint_seconds) const {
  Rehearsal& found = *at_.rehearsal;
  found.spec = at_.foreteller.spec();
  found.estimate = at_.foreteller.estimate(found.spec.first_step);
  found.start_up_seconds = at_.foreteller.start_up_seconds();
  found.checkpoint_seconds = checkpoint_seconds;
  found.steps = position_.step - found.spec.first_step;
}

Exit rehearse(Communicator& communicator, Supervisor& supervisor, const TrainConfig& config, Rehearsal& rehearsal) {
  rehearsal.whole = &config;
  std::string folder;
  if (communicator.rank() == 0) folder = scratch_folder(config.output.folder);
  communicator.broadcast(folder, "name of the rehearsal's folder");
  log::set_level(log::Level::warn);  // its lines would look like a run's
  const auto clean = [&] {
    std::error_code none;
    if (communicator.rank() == 0) fs::remove_all(folder, none);
  };
  try {
    const Exit code = train(communicator, supervisor, rehearsed(config, folder), &rehearsal);
    communicator.barrier("end of the rehearsal");
    clean();
    return code;
  } catch (...) {
    clean();
    throw;
  }
}

}  // namespace convoy
