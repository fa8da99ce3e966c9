// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "options/option.hpp"

namespace convoy {

/// `all` adds hidden options and the other names.
enum class HelpDepth : bool { usual, all };
/// Options with units and defaults, for --help.
std::string option_help(const std::vector<OptionGroup>& groups, HelpDepth depth);
/// What an option does, with `[default: 64; allowed: > 0]` behind it; with `all` also its other names.
std::string option_text(const Option& option, HelpDepth depth);
/// `  LEFT      TEXT`, broken to the width of a terminal.
std::string help_lines(const std::string& left, const std::string& text);

/// Every long option and alias, `--name` one per line.
std::string option_names(const std::vector<OptionGroup>& groups);

}  // namespace convoy
