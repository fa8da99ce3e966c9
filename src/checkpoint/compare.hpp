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
  std::string problem;  ///< of what can't be compared: `not in B`, `5x3x3x3 in A, 5x4x3x3 in B`
  double largest = 0;   ///< of all elements; NaN: a number and none
  double relative = 0;  ///< norm of the difference / norm of A's tensor
};

struct CheckpointComparison {
  CheckpointMeta a, b;
  Index tensors = 0;  ///< of either file
  /// In the order of the network: parameters, statistics, optimiser state, moving average, the outer optimiser's.
  std::vector<TensorDifference> differing;
};

/// Bit for bit, whatever program wrote them; -0 and 0 differ then by 0. Throws Error(data) for a file that is damaged
/// or no checkpoint.
CheckpointComparison compare_checkpoints(const std::string& a, const std::string& b);

/// The checkpoints of two folders with the most steps done that both have, by the first bytes of the files.
std::optional<std::pair<std::string, std::string>> newest_common_checkpoints(const std::string& a,
                                                                             const std::string& b);

}  // namespace convoy
