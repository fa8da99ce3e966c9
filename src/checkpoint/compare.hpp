// SPDX-License-Identifier: Apache-2.0
// What differs between the models of two checkpoints.
#pragma once
#include <cstddef>
#include <string>
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
  /// Tensors that differ, in the order of the network: parameters, statistics, optimiser state, moving average, outer
  /// optimiser, compression of gradients. Tensors of single replicas are compared if both checkpoints have them.
  std::vector<TensorDifference> differing;
};

/// Compares bit by bit, whichever builds wrote the files. If a checkpoint lies between two averages of weights, the
/// mean of its replicas is compared. -0 and 0 differ, and their difference is 0. Throws Error(data) if a file is
/// damaged or not a checkpoint.
CheckpointComparison compare_checkpoints(const std::string& a, const std::string& b);

/// Two checkpoints of one step, of two runs.
struct CheckpointPair {
  Index step = 0;  ///< steps done
  std::string a, b;
  bool operator==(const CheckpointPair&) const = default;
};

/// Returns the checkpoints of two run directories with equal numbers of steps done, the oldest first. Checkpoints from
/// which a run returned to an earlier one don't count. Reads only the first bytes of the files. Throws Error(data).
std::vector<CheckpointPair> common_checkpoints(const std::string& a, const std::string& b);

struct FirstDifference {
  CheckpointPair pair;         ///< the oldest pair that differs; if none differs, the newest pair
  CheckpointComparison found;  ///< of that pair
  std::size_t equal = 0;    ///< number of pairs with equal bits: those before `pair`, and `pair` if it doesn't differ
  Index equal_to_step = 0;  ///< step of the newest pair with equal bits
  std::vector<std::string> left_out;  ///< one line for each pair that could not be compared: why
};

/// Compares the pairs in order up to the first that differs. Leaves a pair out if a file is damaged, or if its run
/// still trains and has removed it meanwhile. Throws Error(data) if no pair can be compared.
FirstDifference first_difference(const std::vector<CheckpointPair>& pairs);

}  // namespace convoy
