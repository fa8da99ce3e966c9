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
/// `  LEFT      TEXT`, broken to the width of a terminal.
std::string help_lines(const std::string& left, const std::string& text);

/// Every long option and alias, `--name` one a line.
std::string option_names(const std::vector<OptionGroup>& groups);

}  // namespace convoy
