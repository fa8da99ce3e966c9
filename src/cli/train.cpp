// SPDX-License-Identifier: Apache-2.0
#include "train/train.hpp"

#include "cli/command.hpp"
#include "cli/launch.hpp"
#include "config/options.hpp"
#include "core/launcher.hpp"
#include "core/log.hpp"

namespace convoy {
namespace {

Exit run_train(Session& session, const Words& words) {
  auto config = agree_on_training(session, words);
  if (!config) return Exit::usage;
  config->command_line = quoted("train", words);
  Communicator communicator(session, config->sync.deadline);
  Supervisor& supervisor = supervise(communicator, config->sync.deadline);
  if (communicator.rank() == 0) {
    const std::string alone = forgotten_launcher(launcher_at_start(), communicator.size());
    if (!alone.empty()) log::warn("{}", alone);
    for (const auto& text : implausible(*config)) log::warn("{}", text);
    for (const auto& text : config->remarks) log::info("{}", text);
  }
  if (config->output.quiet) log::keep_to_file();
  if (!config->own_file.empty() && communicator.rank() == 0)
    log::info("options that are left out are those of '{}'", config->own_file);
  if (config->dry_run) return dry_run(communicator, supervisor, *config);
  return train(communicator, supervisor, *config);
}

}  // namespace

Command train_command() {
  return {
      .name = "train",
      .overview = {"train --data DIR", "train a network"},
      .usage = "mpirun -np N convoy train --data DIR [options]",
      .text =
          "Trains a network on the ranks of an MPI job; one rank needs no mpirun. 'convoy train DIR' means --data DIR.\n"
          "A file for --config uses the same names as keys ('batch-size = 64'), true or false for switches, and sections\n"
          "for training phases: [phase.1] with 'epochs = 0:5' and 'lr = 0.1:0.4' (or one learning rate). Lists are\n"
          "comma-separated. Underscores in names are read as hyphens. Every switch has a --no- form.",
      .lists_networks = true,
      .has_own_options = false,
      .heeds_signals = true,
      .prints_result = false,
      .see_options = see_options<TrainConfig>,
      .on_ranks = run_train};
}

}  // namespace convoy
