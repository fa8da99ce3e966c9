// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "config/config.hpp"

namespace convoy {

// Texts for the console. Throw Error(data) for what can't be read.
std::string inspect_data(const std::string& folder);
/// `path`: a checkpoint file, its folder (the newest) or a run directory.
std::string inspect_checkpoint(const std::string& path);
std::string inspect_plan(const InspectConfig& config);

}  // namespace convoy
