// SPDX-License-Identifier: Apache-2.0
#include "config/print.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "config/effects.hpp"
#include "config/options.hpp"
#include "core/errors.hpp"

namespace convoy {
namespace {

/// A command's options bound to defaults that live as long as the call.
template <class Visit>
void visit_options(const std::string& command, const Visit& visit) {
  auto walk = [&visit](auto config) { visit(options_of(config)); };
  if (command == "train") return walk(TrainConfig{});
  if (command == "evaluate") return walk(EvaluateConfig{});
  if (command == "predict") return walk(PredictConfig{});
  if (command == "bench") return walk(BenchConfig{});
  if (command == "preflight") return walk(PreflightConfig{});
  if (command == "status") return walk(StatusConfig{});
  if (command == "summary") return walk(SummaryConfig{});
  require(command == "inspect", "a command without options");
  walk(InspectConfig{});
}

enum class Defaults : bool { as_lines, as_comments };

/// As it is said again elsewhere.
std::string value_of(const Option& option, Defaults defaults) {
  std::string value = option.print();
  const bool path = option.value == "DIR" || option.value == "FILE" || option.value.starts_with("PATH");
  if (defaults == Defaults::as_lines || !path || value.empty() || value == "auto") return value;
  std::error_code failed;
  return std::filesystem::absolute(value, failed).lexically_normal().string();
}

std::string print(const TrainConfig& config, Defaults defaults_as) {
  TrainConfig copy = config, plain;  // options are bound to fields they may write
  const auto defaults = options_of(plain);
  std::string text;
  for (std::size_t g = 0; const auto& group : options_of(copy)) {
    std::string lines;
    for (std::size_t i = 0; const auto& option : group.options) {
      const std::string value = value_of(option, defaults_as);
      // A file is refused where it gives what has no effect.
      const bool idle =
          effect_of(config, option.name).mistake == Mistake::anywhere && value == defaults[g].options[i].print();
      if (option.place == Place::anywhere && !value.empty() && !idle)
        lines += fmt::format("{}{} = {}\n",
                             defaults_as == Defaults::as_comments && config.said.count(option.name) == 0 ? "# " : "",
                             option.name, value);
      ++i;
    }
    ++g;
    if (!lines.empty()) text += fmt::format("# {}\n{}", group.title, lines);
  }
  for (const PhaseConfig& phase : config.phases) {
    const RatePhase& rate = phase.rate;
    text += fmt::format("[phase.{}]\nepochs = {}:{}\n", phase.number, rate.begin_epoch, rate.end_epoch);
    if (phase.has_rate) text += fmt::format("lr = {}:{}\n", rate.from, rate.to);
    PhaseConfig fields = phase, unset;
    const auto given = options_of(fields), usual = options_of(unset);
    for (std::size_t i = 0; i < given[0].options.size(); ++i) {
      const std::string value = value_of(given[0].options[i], defaults_as);
      if (value != usual[0].options[i].print()) text += fmt::format("{} = {}\n", given[0].options[i].name, value);
    }
  }
  return text;
}

}  // namespace

std::string to_ini(const TrainConfig& config) { return print(config, Defaults::as_lines); }
std::string to_ini_of_words(const TrainConfig& config) { return print(config, Defaults::as_comments); }

std::string option_help(const std::string& command, HelpDepth depth) {
  std::string config_path;
  std::string text = option_help({general_options(config_path)}, depth) +
                     help_lines("    --help", "this text; --help-all adds other programs' names for the same options");
  visit_options(command, [&](const auto& groups) { text += option_help(groups, depth); });
  return text;
}

std::string option_names(const std::string& command) {
  std::string text = "--config\n--help\n--help-all\n";
  visit_options(command, [&](const auto& groups) { text += option_names(groups); });
  return text;
}

}  // namespace convoy
