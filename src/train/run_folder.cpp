// SPDX-License-Identifier: Apache-2.0
#include "train/run_folder.hpp"

#include <unistd.h>

#include <ctime>
#include <filesystem>

#include "backend/factory.hpp"
#include "comm/agree.hpp"
#include "config/print.hpp"
#include "core/host_facts.hpp"
#include "core/json.hpp"
#include "core/launcher.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "io/folder.hpp"
#include "io/hdf5.hpp"
#include "run/attempt.hpp"

namespace convoy {
namespace {

/// Makes it: of several starts in one second each has its own.
std::string make_default_folder(const TrainConfig& config) {
  char stamp[32];
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
  const std::string name =
      fmt::format("runs/{}-{}", config.output.name.empty() ? config.model.model : config.output.name, stamp);
  std::error_code reason;
  std::filesystem::create_directories(std::filesystem::path(name).parent_path(), reason);
  std::string path = name;
  for (int number = 2; !std::filesystem::create_directory(path, reason) && !reason; ++number)
    path = fmt::format("{}-{}", name, number);
  return path;  // where it can't be made the next call says so
}

/// What repeats the run elsewhere: without the places where this one lies, which a second run would write to.
TrainConfig recipe_of(const TrainConfig& config) {
  TrainConfig recipe = config;
  recipe.output.folder.clear();
  recipe.checkpoint.folder.clear();
  recipe.said.erase("quiet");
  if (recipe.checkpoint.resume == "auto") recipe.checkpoint.resume.clear();
  return recipe;
}

}  // namespace

std::string how_to_continue(const TrainConfig& config, int ranks) {
  if (!config.checkpoint.save) return "no checkpoint was kept (--no-checkpoints)";
  if (!own_job().job.empty()) return "resubmit with --resume auto";
  const bool elsewhere = config.checkpoint.folder != config.output.folder + "/checkpoints";
  return fmt::format("continue with: {}convoy train --resume auto --output-dir {}{}",
                     launcher_at_start().name.empty() ? "" : fmt::format("mpirun -np {} ", ranks),
                     shell_word(config.output.folder),
                     elsewhere ? " --checkpoint-dir " + shell_word(config.checkpoint.folder) : "");
}

void make_run_folder(Communicator& communicator, TrainConfig& config) {
  if (config.output.folder.empty() && config.checkpoint.resume == "auto" && config.checkpoint.folder.empty()) {
    fail(Exit::usage,
         "--resume auto needs --output-dir (or --checkpoint-dir): it looks there for the newest checkpoint");
  }
  if (config.output.folder.empty() && communicator.rank() == 0) config.output.folder = make_default_folder(config);
  communicator.broadcast(config.output.folder, "name of the run directory");
  if (config.checkpoint.folder.empty()) config.checkpoint.folder = config.output.folder + "/checkpoints";
  ask_first_rank(communicator, "making the run directory", [&] {
    make_folder(config.output.folder, "choose a writable --output-dir");
    if (config.checkpoint.save) make_folder(config.checkpoint.folder, "choose a writable --checkpoint-dir");
    log::also_to_file(config.output.folder + "/log.txt");
    return std::string();
  });
}

void describe_run(const Communicator& communicator, const TrainConfig& config, const std::string& device,
                  const Fence& fence) {
  if (communicator.rank() != 0) return;
  const auto write = [&](const char* name, const std::string& text) {
    try {
      fence.replace(config.output.folder + "/" + name, text);
    } catch (const Error& e) {
      if (e.code() == Exit::superseded) throw;
      log::warn("{}. The run continues without this file; keep what it takes to repeat the run", e.what());
    }
  };
  write("config.cfg", to_ini_of_words(recipe_of(config)));
  write("command.txt", config.command_line + "\n");
  Json variables = Json::object();
  for (const auto& [name, value] : job_variables(environ)) variables[name] = value;
  const Json environment = Json::object({{"build", build_id()},
                                         {"mpi", mpi_version()},
                                         {"hdf5", hdf5_version()},
                                         {"backends", backend_versions()},
                                         {"device", device},
                                         {"seed", config.seed},
                                         {"ranks", communicator.size()},
                                         {"hosts", communicator.hosts()},
                                         {"driver", nvidia_driver()},
                                         {"variables", variables}});
  write("environment.json", environment.text(2, Json::Order::sorted) + "\n");
}

}  // namespace convoy
