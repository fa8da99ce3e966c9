// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backend/factory.hpp"
#include "comm/communicator.hpp"
#include "core/version.hpp"
#include "io/hdf5.hpp"
#include "network/models.hpp"

namespace convoy {
namespace {

std::string indented(const std::string& lines) {
  std::string text;
  for (std::size_t begin = 0; begin < lines.size();) {
    const auto end = std::min(lines.find('\n', begin), lines.size());
    text += "  " + lines.substr(begin, end - begin) + '\n';
    begin = end + 1;
  }
  return text;
}

}  // namespace

const Command* find_command(const std::string& name) {
  const std::vector<Command>& all = commands();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Command& one) { return one.name == name; });
  return found != all.end() ? &*found : nullptr;
}

std::string exit_codes() {
  return "   0  done\n"
         "   1  internal error, or a loss that is not finite\n"
         "   2  wrong usage or configuration; a run that diverges under --on-spike rollback\n"
         "   3  data missing, damaged or of the wrong form; output that cannot be written\n"
         "   4  device or library\n"
         "   5  communication failed or stalled\n"
         "   6  superseded: a newer attempt continues this run, so do not resubmit\n"
         "   7  a rank computed something wrong (--check-arithmetic, --check-weights): resubmit without its host\n"
         "  75  stopped on request (SIGUSR1, SIGINT, SIGTERM, time limit) after a checkpoint: resubmit with --resume auto\n";
}

std::string program_summary() { return "trains image-classification networks on the ranks of an MPI job"; }

std::string command_list() {
  std::string list;
  for (const Command& command : commands())
    list += fmt::format("  convoy {:<34}  {}\n", command.overview.words, command.overview.text);
  return list;
}

void see_all_options(const Command& command, const SeeOptions& see) {
  command.see_options([&](std::vector<OptionGroup> groups) {
    std::string config_path;
    groups.push_back(general_options(config_path));
    see(groups);
  });
}

std::string program_help() {
  return fmt::format(
      "convoy {}: {}\n\n{}\n"
      "'convoy COMMAND --help' lists the options most used, --help TOPIC those about data, model, lr ..., --help-all\n"
      "all, with the names that other programs give them.\n"
      "'convoy --version' lists what is built in. convoy-preprocess makes data sets.\n\nExit codes:\n{}",
      version(), program_summary(), command_list(), exit_codes());
}

std::string command_help(const Command& command, HelpDepth depth, const std::string& topic) {
  const bool lists = command.lists_networks && (topic.empty() ? depth == HelpDepth::all : topic == "model");
  const std::string networks = lists ? "\nNetworks:\n" + indented(model_help()) : "";
  std::string options;
  command.see_options([&](const std::vector<OptionGroup>& groups) {
    options = option_help(groups, command.has_own_options, depth, topic);
  });
  if (!topic.empty()) return options.substr(1) + networks;
  return fmt::format("Usage: {}\n\n{}\n{}{}\nExit codes:\n{}", command.usage, command.text, options, networks,
                     exit_codes());
}

std::string version_text() {
  std::string backends = backend_versions();
  if (!backends.empty() && backends.back() != '\n') backends += '\n';
  // NCCL lies in the CUDA module, which speaks for both where it is built.
  if (backends.find("CUDA not built") != std::string::npos) backends += "NCCL not built\n";
  return fmt::format("convoy {}\ncompiler: {}\nMPI: {}\nHDF5: {}\n{}", build_id(), compiler(), mpi_version(),
                     hdf5_version(), backends);
}

}  // namespace convoy
