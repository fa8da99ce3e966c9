// SPDX-License-Identifier: Apache-2.0
#include "cli/launch.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/file.hpp"
#include "cli/command.hpp"
#include "comm/agree.hpp"
#include "comm/communicator.hpp"
#include "config/options.hpp"
#include "core/launcher.hpp"
#include "core/log.hpp"
#include "core/standard_output.hpp"
#include "core/text.hpp"
#include "options/command_line.hpp"
#include "run/run_state.hpp"

namespace convoy {
namespace {

/// The rank that the launcher gave, before MPI is there to ask.
bool is_first_rank() { return launcher_at_start().rank == 0; }

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// The word behind --help, with or without dashes in front: what help is wanted about. Empty: there is none.
std::string topic_behind(const Words& words, const std::string& help) {
  const auto at = std::find(words.begin(), words.end(), help);
  if (words.end() - at < 2) return "";
  const std::string& topic = *(at + 1);
  return with_hyphens(topic.substr(std::min(topic.find_first_not_of('-'), topic.size())));
}

Exit refuse(const std::string& problem) {
  if (is_first_rank()) log::report_error(problem);
  return Exit::usage;
}

Exit code_of(const std::exception& failure) {
  const auto* error = dynamic_cast<const Error*>(&failure);
  return error != nullptr ? error->code() : Exit::internal;
}

/// What needs no ranks.
template <class Work>
Exit run_once(const Work& work) {
  if (!is_first_rank()) return Exit::ok;
  try {
    return work();
  } catch (const std::exception& e) {
    log::report_error(e.what());
    return code_of(e);
  }
}

/// It outlives the command, whose end it records.
std::unique_ptr<Supervisor>& supervisor() {
  static std::unique_ptr<Supervisor> instance;
  return instance;
}

void end_supervision(Exit code) {
  if (supervisor()) supervisor()->end(code);
}

template <class Text>
Exit say(const Text& text) {
  return run_once([&] {
    write_output(text());
    return Exit::ok;
  });
}

Exit say_help(const Command& command, HelpDepth depth, const std::string& topic) {
  return say([&] { return command_help(command, depth, topic); });
}

Exit refuse_command(const std::string& word) {
  if (word.front() == '-') {
    return refuse(fmt::format(
        "'{}' is not a command; options follow the command, as in 'convoy train {}'. See 'convoy --help'", word, word));
  }
  std::string hint = foreign_command(word);
  std::vector<std::string> names;
  for (const Command& one : commands()) names.push_back(one.name);
  const std::string meant = nearest(word, names);
  if (hint.empty() && !meant.empty()) hint = fmt::format("did you mean '{}'?", meant);
  return refuse(fmt::format("convoy has no command '{}'{}{}{} See 'convoy --help'", word, hint.empty() ? "" : "; ",
                            hint, hint.ends_with('?') ? "" : "."));
}

}  // namespace

std::optional<Exit> answer_alone(const Words& words) {
  if (words.empty()) {
    say(program_help);
    return Exit::usage;
  }
  const std::string& first = words.front();
  if (first == "--version" || first == "version") return say(version_text);
  if (first == "--help" || first == "-h" || first == "help") {
    if (words.size() < 2) return say(program_help);
    const Command* command = find_command(words[1]);
    if (command == nullptr) return refuse_command(words[1]);
    return say_help(*command, HelpDepth::usual, topic_behind(words, words[1]));
  }
  const Command* const command = find_command(first);
  if (command == nullptr) return refuse_command(first);
  const Words rest(words.begin() + 1, words.end());
  for (const char* help : {"--help", "-h"})
    if (has(rest, help)) return say_help(*command, HelpDepth::usual, topic_behind(rest, help));
  if (has(rest, "--help-all")) return say_help(*command, HelpDepth::all, "");
  if (has(rest, "--option-names")) {
    std::string names;
    command->see_options([&](const std::vector<OptionGroup>& groups) { names = all_option_names(groups); });
    return say([&] { return names; });
  }
  if (command->alone != nullptr) return run_once([&] { return command->alone(rest); });
  return std::nullopt;
}

Exit run_on_ranks(Session& session, const Words& words) {
  if (const std::string problem = lonely_worlds(launcher_at_start(), world_size()); !problem.empty()) {
    // The launcher may end all once one has left.
    if (!is_first_rank()) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    return refuse(problem);
  }
  const Words rest(words.begin() + 1, words.end());
  const Command* const command = find_command(words.front());
  require(command != nullptr && command->on_ranks != nullptr, "a command that nobody runs");
  const Exit result = command->on_ranks(session, rest), code = command->prints_result ? require_output(result) : result;
  end_supervision(code);
  return code;
}

Supervisor& supervise(Communicator& communicator, const StallLimits& limits) {
  supervisor() = std::make_unique<Supervisor>(communicator, limits);
  return *supervisor();
}

Exit refuse_start(const std::exception& failure) {
  if (is_first_rank()) log::report_error(failure.what());
  return code_of(failure);
}

void end_job(const std::exception& failure) {
  const Exit code = code_of(failure);
  // Wrong usage is mostly seen by all ranks alike: rank 0 speaks and ends the job before the others have waited.
  if (code == Exit::usage && !is_first_rank()) std::this_thread::sleep_for(std::chrono::seconds(1));
  if (log::last_error() != failure.what()) log::report_error(failure.what());
  end_supervision(code);
  abort_job(code);
}

namespace {

/// Stands in for a configuration that a power cut has emptied, or that was removed; empty: nothing does.
std::string configuration_in_checkpoint(const std::string& folder, const std::string& path) {
  for (const std::string& place : checkpoint_folders(folder)) {
    for (const std::string& file : list_checkpoints(place, {}, Lineage(folder))) {
      try {
        const CheckpointMeta meta = read_main_meta(file).meta;
        const auto found = meta.texts.find("configuration");
        if (found == meta.texts.end()) continue;
        log::warn("'{}' is empty or gone: the configuration in '{}' stands in for it", path, file);
        return found->second;
      } catch (const Error&) {  // damaged: whoever resumes says so
      }
    }
  }
  return {};
}

/// The configuration of a run directory; empty: there is none. That of a start without any result counts only if
/// the words name no data set: a job script that names everything says itself what it wants.
std::string read_own(const std::string& path, NamesData of_words) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  bool counts = of_words == NamesData::no || !list_checkpoints(folder + "/checkpoints").empty() ||
                Lineage(folder).newest().number > 0;
  try {
    const auto state = read_run_state(folder);
    counts |= state && !state->checkpoint.empty();
  } catch (const Error&) {  // it would know of a checkpoint elsewhere, so there may be one; whoever needs it says so
    counts = true;
  }
  if (!counts) return {};
  const std::string text = read_text_file_if_there(path);
  return trimmed(text).empty() ? configuration_in_checkpoint(folder, path) : text;
}

/// Collective.
ReadText reader(Communicator& communicator, const ReadText& read) {
  return [&communicator, read](const std::string& path) {
    return ask_first_rank(communicator, "configuration file", [&] { return read(path); });
  };
}

/// Collective.
template <class Config>
std::optional<Config> agree(Session& session, const std::function<Config(Communicator&)>& parse) {
  Communicator communicator(session, StallLimits{});
  log::configure(communicator.rank(), communicator.size(), communicator.host());
  try {
    return parse(communicator);
  } catch (const Error& e) {
    if (e.code() != Exit::usage) throw;
    if (communicator.rank() == 0) log::report_error(e.what());
    return std::nullopt;
  }
}

}  // namespace

template <class Config>
std::optional<Config> agree_on_config(Session& session, const Words& words, Parse<Config> parse) {
  return agree<Config>(session, [&](Communicator& ranks) { return parse(words, reader(ranks, read_text_file)); });
}

std::optional<TrainConfig> agree_on_training(Session& session, const Words& words) {
  return agree<TrainConfig>(session, [&](Communicator& ranks) {
    return parse_train(words, reader(ranks, read_text_file), [&ranks](const std::string& path, NamesData of_words) {
      return ask_first_rank(ranks, "configuration file", [&] { return read_own(path, of_words); });
    });
  });
}

template std::optional<EvaluateConfig> agree_on_config(Session&, const Words&, Parse<EvaluateConfig>);
template std::optional<PredictConfig> agree_on_config(Session&, const Words&, Parse<PredictConfig>);
template std::optional<PreflightConfig> agree_on_config(Session&, const Words&, Parse<PreflightConfig>);
template std::optional<BenchConfig> agree_on_config(Session&, const Words&, Parse<BenchConfig>);

std::string quoted(const std::string& command, const Words& words) {
  std::string line = "convoy " + command;
  for (const auto& word : words) line += ' ' + shell_word(word);
  return line;
}

}  // namespace convoy
