// SPDX-License-Identifier: Apache-2.0
#include "config/print.hpp"

#include <fmt/format.h>

#include "config/options.hpp"

namespace convoy {

std::string to_ini(const TrainConfig& config) {
  TrainConfig copy = config;  // options are bound to fields they may write
  std::string text;
  for (const auto& group : options_of(copy)) {
    std::string lines;
    for (const auto& option : group.options) {
      const std::string value = option.print();
      if (option.place == Place::anywhere && !value.empty()) lines += fmt::format("{} = {}\n", option.name, value);
    }
    if (!lines.empty()) text += fmt::format("# {}\n{}", group.title, lines);
  }
  for (const auto& [number, rate] : config.phases) {
    text += fmt::format("[phase.{}]\nepochs = {}:{}\nlr = {}:{}\n", number, rate.begin_epoch, rate.end_epoch, rate.from,
                        rate.to);
  }
  return text;
}

}  // namespace convoy
