// SPDX-License-Identifier: Apache-2.0
// One file a command. A command that runs on ranks gets the session; `words` is what follows its name.
#pragma once
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/session.hpp"
#include "config/config.hpp"
#include "config/print.hpp"
#include "core/errors.hpp"
#include "run/supervisor.hpp"

namespace convoy {

using Words = std::vector<std::string>;

/// Collective.
Exit train_command(Session& session, const Words& words);
/// Collective.
Exit evaluate_command(Session& session, const Words& words);
/// Collective.
Exit predict_command(Session& session, const Words& words);
/// Collective.
Exit bench_command(Session& session, const Words& words);
/// Collective.
Exit preflight_command(Session& session, const Words& words);

/// Alone, without MPI.
Exit inspect_command(const Words& words);
/// Alone, without MPI.
Exit status_command(const Words& words);
/// Alone, without MPI.
Exit summary_command(const Words& words);
/// Alone, without MPI.
Exit diff_command(const Words& words);
/// Alone, without MPI.
Exit report_command(const Words& words);

// What the program says of itself.

const std::vector<std::string>& command_names();
std::string program_help();
/// `topic`: empty, or what the help is to be about.
std::string command_help(const std::string& command, HelpDepth depth, const std::string& topic = {});
/// Version, commit, compiler and one line for every library and optional part, built in or not.
std::string version_text();

/// Collective. `convoy train --dry-run`: prints the configuration as a file for --config and, as comments in it, what
/// it comes to: sizes, cost, memory, batches, learning rates and steps. Then it makes some
/// steps in a folder of its own, which it removes, and says how long the run would take (--dry-run-seconds).
Exit dry_run(Communicator& communicator, Supervisor& supervisor, const TrainConfig& config);

}  // namespace convoy
