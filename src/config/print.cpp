// SPDX-License-Identifier: Apache-2.0
#include "config/print.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "config/effects.hpp"
#include "config/options.hpp"
#include "config/phase_fields.hpp"

namespace convoy {

namespace {

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

}  // namespace convoy
