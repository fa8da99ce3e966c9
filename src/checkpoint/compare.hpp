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
  /// In the order of the network: parameters, statistics, optimiser state, moving average, the outer optimiser's,
  /// what compresses gradients; that of single replicas where both have it.
  std::vector<TensorDifference> differing;
};

/// Compares bit for bit; of replicas between two averages of weights, the averages. Whichever build wrote the files: -0
/// and 0 differ, by 0. Throws Error(data) if a file is damaged or not a checkpoint.
CheckpointComparison compare_checkpoints(const std::string& a, const std::string& b);

/// Two checkpoints of one step, of two runs.
struct CheckpointPair {
  Index step = 0;  ///< steps done
  std::string a, b;
  bool operator==(const CheckpointPair&) const = default;
};

/// The checkpoints of two run directories that have the same number of steps done, the oldest first. Those that a run
/// has left behind when it returned to an earlier one don't count. Reads the first bytes of the files. Throws
/// Error(data).
std::vector<CheckpointPair> common_checkpoints(const std::string& a, const std::string& b);

struct FirstDifference {
  CheckpointPair pair;  ///< the oldest pair that differs; if none does, the newest
  CheckpointComparison found;
  std::size_t equal = 0;    ///< pairs that have the same bits, before this one, or with it if it doesn't differ
  Index equal_to_step = 0;  ///< of the newest of them
  std::vector<std::string> left_out;  ///< why a pair could not be compared
};

/// Compares the pairs in order up to the first that differs. A pair that is damaged, or that a run which goes on has
/// removed meanwhile, is left out. Throws Error(data) if no pair can be compared.
FirstDifference first_difference(const std::vector<CheckpointPair>& pairs);

}  // namespace convoy
