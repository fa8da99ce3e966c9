// SPDX-License-Identifier: Apache-2.0
// Options that count only beside others: said once, for the parser, which refuses them alone, and for printing, which
// leaves them out.
#pragma once
#include <string>

#include "config/config.hpp"

namespace convoy {

/// Where an option without effect is a mistake. command_line: a configuration file may hold it for a switch that is
/// given later (synthetic-size, for --synthetic).
enum class Mistake : std::uint8_t { nowhere, command_line, anywhere };

struct Effect {
  Mistake mistake = Mistake::nowhere;  ///< nowhere: the option changes something
  std::string needs = {};              ///< `--lr-schedule step or multistep`
};

/// Does the option of training change anything in this configuration?
Effect effect_of(const TrainConfig& config, const std::string& option);

}  // namespace convoy
