// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace convoy {

/// Options of a command with units and defaults, for --help; `all` adds hidden ones and the other names.
enum class HelpDepth : bool { usual, all };
std::string option_help(const std::string& command, HelpDepth depth);

/// Every long option and alias that a command accepts, `--name` one a line.
std::string option_names(const std::string& command);

}  // namespace convoy
