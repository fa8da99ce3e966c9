// SPDX-License-Identifier: Apache-2.0
#include "options/completion.hpp"

#include "cli/command.hpp"
#include "config/parse.hpp"
#include "core/standard_output.hpp"
#include "network/models.hpp"

namespace convoy {
namespace {

struct CompletionConfig {};

std::vector<OptionGroup> options_of(CompletionConfig&) { return {}; }

CompletedCommand completed(const Command& command) {
  CompletedCommand completed;
  see_all_options(command, [&](const std::vector<OptionGroup>& groups) {
    completed = completed_command(command.name, command.overview.text, command.first_words, groups);
  });
  for (CompletedOption& option : completed.options)
    if (option.name == "model") option.choices = model_names();
  return completed;
}

Exit run_completion(const Words& words) {
  CompletionConfig config;
  const std::vector<std::string> shells = read_words("completion", options_of(config), words);
  if (shells.size() != 1) fail(Exit::usage, "no shell is given; use 'convoy completion bash' or 'zsh'");
  std::vector<CompletedCommand> all;
  for (const Command& command : commands()) all.push_back(completed(command));
  write_output(completion_script(shells.front(), "convoy", all));
  return Exit::ok;
}

}  // namespace

Command completion_command() {
  return {
      .name = "completion",
      .overview = {"completion bash|zsh", "script that completes command lines in a shell"},
      .usage = "convoy completion bash|zsh",
      .text =
          "Prints a script that completes commands, options and their values. 'source <(convoy completion bash)' makes it\n"
          "work in this shell; in ~/.bashrc or ~/.zshrc (after compinit) the line works in every shell. 'cmake --install' puts\n"
          "the scripts where both shells find them. 'convoy-preprocess completion bash' is the same for the other program.",
      .first_words = {"bash", "zsh"},
      .see_options = see_options<CompletionConfig>,
      .alone = run_completion};
}

}  // namespace convoy
