// SPDX-License-Identifier: Apache-2.0
// What the program says of itself.
#pragma once
#include <string>
#include <vector>

#include "config/help.hpp"

namespace convoy {

const std::vector<std::string>& command_names();
std::string program_help();
std::string command_help(const std::string& command, HelpDepth depth);
/// Version, commit, compiler and one line for every library and optional part, built in or not.
std::string version_text();

}  // namespace convoy
