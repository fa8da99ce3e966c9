// SPDX-License-Identifier: Apache-2.0
#include "preprocess/documentation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/errors.hpp"
#include "core/version.hpp"
#include "options/completion.hpp"
#include "options/help.hpp"
#include "options/manual.hpp"
#include "preprocess/options.hpp"

namespace convoy::preparation {
namespace {

/// A group of options and the words that have it.
struct SharedGroup {
  OptionGroup group;
  std::string help;
  std::vector<std::string> words;
};

/// The options as they are told, without the fields that they fill.
OptionGroup detached(OptionGroup group) {
  for (Option& option : group.options) {
    option.print = [text = option.print()] { return text; };
    option.set = {};
  }
  return group;
}

}  // namespace

std::string manual() {
  std::vector<SharedGroup> shared;
  const std::vector<std::string> all = command_words();
  for (const std::string& word : all)
    see_options(word, [&](const std::vector<OptionGroup>& groups) {
      for (const OptionGroup& group : groups) {
        const std::string help = option_help({group}, HelpDepth::all);
        const auto same =
            std::find_if(shared.begin(), shared.end(), [&](const SharedGroup& known) { return known.help == help; });
        if (same != shared.end()) {
          same->words.push_back(word);
        } else {
          shared.push_back({detached(group), help, {word}});
        }
      }
    });
  std::vector<OptionGroup> groups;
  for (SharedGroup& each : shared) {
    const bool common = each.words.size() + 1 >= all.size();  // inspect has hardly any
    if (!common) each.group.title += fmt::format(" of {}", fmt::join(each.words, ", "));
    groups.push_back(std::move(each.group));
  }
  return manual_page({.name = "convoy-preprocess",
                      .summary = "turns raw image data into HDF5 partitions for convoy",
                      .version = "convoy " + version(),
                      .usage = "convoy-preprocess KIND [options]\nmpirun -np N convoy-preprocess KIND [options]",
                      .text = usage_text(),
                      .sections = {{"Exit status", exit_code_text().substr(1)}},
                      .see_also = "convoy(1), convoy-train(1)"},
                     groups);
}

std::string completion(const std::vector<std::string>& words) {
  if (words.size() != 1) fail(Exit::usage, "no shell is given; use 'convoy-preprocess completion bash' or 'zsh'");
  std::vector<CompletedCommand> commands;
  for (const std::string& word : command_words())
    see_options(word, [&](const std::vector<OptionGroup>& groups) {
      commands.push_back(completed_command(word, fmt::format("partitions: {}", word), {}, groups));
    });
  commands.push_back(completed_command("completion", "script that completes command lines", {"bash", "zsh"}, {}));
  commands.push_back(completed_command("manual", "manual page, for man", {}, {}));
  return completion_script(words.front(), "convoy-preprocess", commands);
}

}  // namespace convoy::preparation
