// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <set>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "options/command_line.hpp"

namespace convoy {

/// Fills the phases of training from the keys of [phase.N]. `names`: the options that are given beside them; phases
/// with learning rates are the schedule unless these name one. Throws Error(usage).
void fill_phases(TrainConfig& config, const std::vector<Assignment>& given, const std::set<std::string>& names);

}  // namespace convoy
