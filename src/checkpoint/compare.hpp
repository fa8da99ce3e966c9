// SPDX-License-Identifier: Apache-2.0
// What differs between the models of two checkpoints.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/meta.hpp"
#include "core/types.hpp"

namespace convoy {

struct TensorDifference {
  std::string name;     ///< `/parameters/conv1.weight`
  std::string problem;  ///< why they can't be compared: `not in B`, `5x3x3x3 in A, 5x4x3x3 in B`
  double largest = 0;   ///< of all elements; NaN: one is a number, the other not
  double relative = 0;  ///< norm of the difference / norm of A's tensor
};

struct CheckpointComparison {
  CheckpointMeta a, b;
  Index tensors = 0;  ///< of either file
  /// In the order of the network: parameters, statistics, optimiser state, moving average, the outer optimiser's,
  /// what compresses gradients; that of single replicas where both have it.
  std::vector<TensorDifference> differing;
};

/// Compares bit for bit, whichever build wrote the files: -0 and 0 differ, by 0. Throws Error(data) if a file is
/// damaged or not a checkpoint.
CheckpointComparison compare_checkpoints(const std::string& a, const std::string& b);

/// The newest checkpoints of two run directories that have the same number of steps done. Reads the first bytes of the
/// files.
std::optional<std::pair<std::string, std::string>> newest_common_checkpoints(const std::string& a,
                                                                             const std::string& b);

}  // namespace convoy
