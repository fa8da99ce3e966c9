// SPDX-License-Identifier: Apache-2.0
// A command is one file, cli/NAME.cpp, that defines `Command NAME_command()`, and its NAME in the list of
// cli/CMakeLists.txt. It runs alone or on ranks; `words` is what follows its name.
#pragma once
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/session.hpp"
#include "config/config.hpp"
#include "config/options.hpp"
#include "config/print.hpp"
#include "core/errors.hpp"
#include "run/supervisor.hpp"

namespace convoy {

using Words = std::vector<std::string>;

struct Command {
  /// Its line of `convoy --help`.
  struct Overview {
    std::string words, text;
  };
  std::string name;
  Overview overview;
  std::string usage, text;      ///< of its own help
  Words first_words = {};       ///< that may follow its name in place of a path, for completion
  bool lists_networks = false;  ///< in --help-all
  bool has_own_options = true;  ///< in its first group, which help shows whole
  bool heeds_signals = false;   ///< stops in order when it is asked to (core/stop.hpp)
  bool prints_result = true;    ///< else what it says is a log, and its results are files
  void (*see_options)(const SeeOptions& see) = nullptr;
  Exit (*alone)(const Words& words) = nullptr;                       ///< without MPI
  Exit (*on_ranks)(Session& session, const Words& words) = nullptr;  ///< collective
};

/// In the order of --help.
const std::vector<Command>& commands();
/// Null: there is none.
const Command* find_command(const std::string& name);

/// The command's options and those that all commands have, bound to defaults that live as long as the call.
void see_all_options(const Command& command, const SeeOptions& see);

// What the program says of itself.

std::string program_help();
std::string program_summary();  ///< without the name
std::string command_list();     ///< a line for each
std::string exit_codes();       ///< a line for each
/// `topic`: empty, or what the help is to be about.
std::string command_help(const Command& command, HelpDepth depth, const std::string& topic = {});
/// Version, commit, compiler and one line for every library and optional part, built in or not.
std::string version_text();

/// The description of a card for --card. Throws Error(usage).
std::string read_card(const std::string& path);

/// Collective. `convoy train --dry-run`: prints the configuration as a file for --config and, as comments in it, what
/// it comes to: sizes, cost, memory, batches, learning rates and steps. Then it makes some
/// steps in a folder of its own, which it removes, and says how long the run would take (--dry-run-seconds).
Exit dry_run(Communicator& communicator, Supervisor& supervisor, const TrainConfig& config);

}  // namespace convoy
