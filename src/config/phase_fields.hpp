// SPDX-License-Identifier: Apache-2.0
// The keys of a [phase.N] besides epochs and lr.
#pragma once
#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/option.hpp"

namespace convoy {

std::vector<OptionGroup> options_of(PhaseConfig& phase);
/// All keys, for messages; epochs and lr first.
const std::vector<std::string>& phase_keys();

}  // namespace convoy
