// SPDX-License-Identifier: Apache-2.0
#include "train/train.hpp"

#include "cli/command.hpp"
#include "cli/launch.hpp"
#include "core/launcher.hpp"
#include "core/log.hpp"

namespace convoy {

Exit train_command(Session& session, const Words& words) {
  auto config = agree_on_training(session, words);
  if (!config) return Exit::usage;
  config->command_line = quoted("train", words);
  Communicator communicator(session, config->sync.deadline);
  Supervisor& supervisor = supervise(communicator, config->sync.deadline);
  if (communicator.rank() == 0) {
    const std::string alone = forgotten_launcher(launcher_at_start(), communicator.size());
    if (!alone.empty()) log::warn("{}", alone);
    for (const auto& text : implausible(*config)) log::warn("{}", text);
  }
  if (config->output.quiet) log::set_level(log::Level::warn);
  if (!config->own_file.empty() && communicator.rank() == 0)
    log::info("options that are left out are those of '{}'", config->own_file);
  if (config->dry_run) return dry_run(communicator, supervisor, *config);
  return train(communicator, supervisor, *config);
}

}  // namespace convoy
