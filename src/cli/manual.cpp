// SPDX-License-Identifier: Apache-2.0
#include "options/manual.hpp"

#include <fmt/format.h>

#include "cli/command.hpp"
#include "config/parse.hpp"
#include "core/standard_output.hpp"
#include "core/version.hpp"
#include "options/command_line.hpp"

namespace convoy {
namespace {

struct ManualConfig {};

std::vector<OptionGroup> options_of(ManualConfig&) { return {}; }

std::string page_of_program() {
  std::string pages = "convoy-preprocess(1)";
  for (const Command& command : commands()) pages += fmt::format(", convoy-{}(1)", command.name);
  return manual_page({.name = "convoy",
                      .summary = program_summary(),
                      .version = "convoy " + version(),
                      .usage = "convoy COMMAND [options]\nmpirun -np N convoy COMMAND [options]\nconvoy --version",
                      .text = "Commands. Each has a page of its own, convoy-COMMAND(1).\n\n" + command_list(),
                      .sections = {{"Exit status", exit_codes()}},
                      .see_also = pages},
                     {});
}

std::string page_of(const Command& command) {
  std::string page;
  see_all_options(command, [&](const std::vector<OptionGroup>& groups) {
    page = manual_page({.name = "convoy-" + command.name,
                        .summary = command.overview.text,
                        .version = "convoy " + version(),
                        .usage = command.usage,
                        .text = command.text,
                        .sections = {{"Exit status", exit_codes()}},
                        .see_also = "convoy(1), convoy-preprocess(1)"},
                       groups);
  });
  return page;
}

Exit run_manual(const Words& words) {
  ManualConfig config;
  const std::vector<std::string> names = read_words("manual", options_of(config), words);
  allow_positional("convoy manual", names, 1);
  const Command* const command = names.empty() ? nullptr : find_command(names.front());
  if (!names.empty() && command == nullptr)
    fail(Exit::usage, "convoy has no command '{}', so it has no page; 'convoy --help' lists the commands",
         names.front());
  write_output(command == nullptr ? page_of_program() : page_of(*command));
  return Exit::ok;
}

}  // namespace

Command manual_command() {
  return {
      .name = "manual",
      .overview = {"manual [COMMAND]", "manual page, for man"},
      .usage = "convoy manual [COMMAND] | man -l -",
      .text =
          "Prints the manual page of the program or of a command as man reads it. 'cmake --install' puts all pages\n"
          "where 'man convoy-train' finds them.",
      .see_options = see_options<ManualConfig>,
      .alone = run_manual};
}

}  // namespace convoy
