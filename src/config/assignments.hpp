// SPDX-License-Identifier: Apache-2.0
// Boost.Program_options under one roof: words and INI texts become assignments of texts to names. No values are looked
// at.
#pragma once
#include <string>
#include <vector>

#include "config/option.hpp"

namespace convoy {

struct Assignment {
  std::string name = {};  ///< documented name; in a section: the key
  std::string value = {};
  std::string origin = {};  ///< `--wd 3` or `tiny.cfg:12: wd = 3`, for messages
  int phase = 0;            ///< [phase.N]; 0: none
};

struct CommandLine {
  std::vector<Assignment> assignments;
  std::vector<std::string> positional;
  std::string config_path;  ///< --config; empty: none
};

/// Throws Error(usage) for an unknown option (with the nearest name), a missing value, a value given to a switch, two
/// --config.
CommandLine read_command_line(const std::string& command, const std::vector<OptionGroup>& groups,
                              const std::vector<std::string>& words);

/// Throws Error(usage) for a line that isn't `key = value`, an unknown key or section, a key given twice. `name`: of
/// the file. `others`: options of the command that the file was written for, where it is another; what only that has
/// (also where its name for it means something else here), and [phase.N], are left out.
std::vector<Assignment> read_ini(const std::vector<OptionGroup>& groups, const std::string& text,
                                 const std::string& name, const std::vector<OptionGroup>& others = {});

}  // namespace convoy
