// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "config/config.hpp"

namespace convoy {

/// Writes a checkpoint with the means of the weights and running statistics of several (of their moving averages, where
/// they have one), without optimiser state, and returns a line about it. Throws Error(usage) where the output is in the
/// way, Error(data) where networks, classes or data differ.
std::string average_models(const AverageConfig& config);

}  // namespace convoy
