// SPDX-License-Identifier: Apache-2.0
#include "train/trial.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "core/log.hpp"
#include "train/train.hpp"

namespace convoy {
namespace {

namespace fs = std::filesystem;

void remove_folder(const fs::path& folder) {
  std::error_code failed;
  constexpr int most_tries = 3;  // the thread that writes heartbeats may add a file meanwhile
  for (int i = 0; i < most_tries; ++i) {
    fs::remove_all(folder, failed);
    if (!failed) return;
  }
}

/// Removes what trials of this host left whose process was killed.
void remove_abandoned(const fs::path& above, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (fs::directory_iterator at(above, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const std::string number = name.substr(prefix.size());
    if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto process = static_cast<pid_t>(std::strtol(number.c_str(), nullptr, 10));
    if (::kill(process, 0) != 0 && errno == ESRCH) found.push_back(at->path());
  }
  std::for_each(found.begin(), found.end(), remove_folder);
}

/// In the nearest folder above the run directory that is there: the file system is that of the run.
std::string scratch_folder(const std::string& output, const std::string& host) {
  fs::path above = output.empty() ? fs::path("runs") : fs::path(output);
  std::error_code none;
  while (!above.empty() && !fs::is_directory(above, none)) above = above.parent_path();
  if (above.empty()) above = ".";
  const std::string prefix = fmt::format(".trial-run-{}-", host);
  remove_abandoned(above, prefix);
  return (above / fmt::format("{}{}", prefix, getpid())).string();
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
  if (communicator.rank() == 0) folder = scratch_folder(config.output.folder, communicator.host());
  communicator.broadcast(folder, "name of the trial run's folder");
  log::set_level(log::Level::warn);  // its lines would look like a run's
  TrainConfig own = config;
  own.output.folder = folder;
  own.checkpoint.folder = folder + "/checkpoints";
  try {
    const Exit code = train(communicator, supervisor, own, &trial);
    communicator.barrier("end of the trial run");
    if (communicator.rank() == 0) remove_folder(folder);
    return code;
  } catch (...) {
    remove_folder(folder);  // on any rank: this one ends the job, and the others with it
    throw;
  }
}

}  // namespace convoy
