// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "config/config.hpp"
#include "options/help.hpp"

namespace convoy {

/// Every option and its value under comments that name the groups, [phase.N] sections last: a file for --config.
std::string to_ini(const TrainConfig& config);
/// The same with what was said alone, paths absolute; the rest stands in comments.
std::string to_ini_of_words(const TrainConfig& config);

/// Options of a command with units and defaults: usual: those of the first day; all: all, with other names. `topic`:
/// only those about it (a part of the headings), or whose names hold it.
std::string option_help(const std::string& command, HelpDepth depth, const std::string& topic = {});
/// Every long option and alias that a command accepts, `--name` one a line.
std::string option_names(const std::string& command);

}  // namespace convoy
