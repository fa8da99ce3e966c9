// SPDX-License-Identifier: Apache-2.0
#include "config/print.hpp"

#include <fmt/format.h>

#include "config/effects.hpp"
#include "config/options.hpp"
#include "config/phase_fields.hpp"

namespace convoy {

std::string to_ini(const TrainConfig& config) {
  TrainConfig copy = config, plain;  // options are bound to fields they may write
  const auto defaults = options_of(plain);
  std::string text;
  for (std::size_t g = 0; const auto& group : options_of(copy)) {
    std::string lines;
    for (std::size_t i = 0; const auto& option : group.options) {
      const std::string value = option.print();
      // A file is refused where it gives what has no effect.
      const bool idle =
          effect_of(config, option.name).mistake == Mistake::anywhere && value == defaults[g].options[i].print();
      if (option.place == Place::anywhere && !value.empty() && !idle)
        lines += fmt::format("{} = {}\n", option.name, value);
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
      const std::string value = given[0].options[i].print();
      if (value != usual[0].options[i].print()) text += fmt::format("{} = {}\n", given[0].options[i].name, value);
    }
  }
  return text;
}

}  // namespace convoy
