// SPDX-License-Identifier: Apache-2.0
// Completion of command lines in shells, from the tables of options. The scripts hold all they need, so a key press
// starts no program.
#pragma once
#include <string>
#include <vector>

#include "options/option.hpp"

namespace convoy {

/// An option as shells complete it.
struct CompletedOption {
  std::string name, help;
  std::string value;                 ///< what help calls the value; empty: a switch
  std::vector<std::string> choices;  ///< words that the value may be; empty: unknown
  bool is_path = false;
};

struct CompletedCommand {
  std::string name, text;
  std::vector<std::string> words;  ///< that may stand in place of an option, besides paths
  std::vector<CompletedOption> options;
};

CompletedCommand completed_command(std::string name, std::string text, std::vector<std::string> words,
                                   const std::vector<OptionGroup>& groups);

/// `shell`: `bash` or `zsh`; throws Error(usage) for another. The script completes `program`, also if it is sourced.
std::string completion_script(const std::string& shell, const std::string& program,
                              const std::vector<CompletedCommand>& commands);

}  // namespace convoy
