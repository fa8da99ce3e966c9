// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace convoy {

struct AverageConfig {
  std::vector<std::string> checkpoints;  ///< files or run directories
  std::string output;
  bool overwrite = false;
};

/// Writes a checkpoint with the mean weights and running statistics of several (of the moving average of those that
/// have one), without optimiser state. Returns a line about it. Throws Error(usage) if the output is in the way,
/// Error(data) if networks, classes or data differ.
std::string average_models(const AverageConfig& config);

}  // namespace convoy
