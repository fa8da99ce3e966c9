// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>

#include "config/config.hpp"
#include "options/help.hpp"

namespace convoy {

/// Every option and its value under comments that name the groups, [phase.N] sections last: a file for --config.
std::string to_ini(const TrainConfig& config);
/// The same with what was said alone, paths absolute; the rest stands in comments.
std::string to_ini_of_words(const TrainConfig& config);

/// What training runs are compared by: the options that were given, paths aside, and those that matter most.
std::map<std::string, std::string> hyperparameters(const TrainConfig& config);

/// A command's options with units and defaults. usual: those most used, and all of the first group if
/// `first_is_own`; all: all, with other names. `topic`: only those below a heading with this word, or with it in their
/// names.
std::string option_help(std::vector<OptionGroup> groups, bool first_is_own, HelpDepth depth,
                        const std::string& topic = {});
/// Every long option and alias that a command accepts, `--name` one per line.
std::string all_option_names(const std::vector<OptionGroup>& groups);

}  // namespace convoy
