// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "comm/collectives.hpp"
#include "core/replicas.hpp"

namespace convoy {

/// Whether a rank's last replica is still in the leaf when the sum is reduced, or the leaf was needed for something
/// else.
enum class LastLeaf : std::uint8_t { stays, leaves };

struct ReplicaSumSpec {
  ReplicaRun run;             ///< the rank's replicas
  bool reproducible = false;  ///< add along the fixed tree
  LastLeaf last_leaf = LastLeaf::stays;
  Index count = 0;  ///< floats that are summed
};

/// Sums what the replicas of a job contribute one after the other in one block. A rank with several replicas keeps the
/// earlier ones in slots: one, or with `reproducible` a stack of the nodes of its run. Which slot a replica goes to
/// depends on its number alone, so that launches can be captured and replayed.
class ReplicaSum {
 public:
  /// `leaf`: the block in which every replica makes its contribution.
  ReplicaSum(Device& device, Collectives& collectives, const ReplicaSumSpec& spec, float* leaf);

  /// Takes `range` of the leaf as the contribution of an owned replica; replicas come in order. `wire`: in what the
  /// range travels. Reproducible sums round it and every sum of two, since any of them may be what a rank sends.
  void add(int replica, const Range& range, Wire wire = Wire::fp32);
  /// Blocks of `count` floats that a sum allocates.
  static Index slots(const ReplicaSumSpec& spec);

  /// Collective. After the rank's last add: the leaf's range becomes the sum over all replicas. `what`: static storage.
  Ticket reduce(const Range& range, const char* what, Wire wire = Wire::fp32);

 private:
  struct Turn {
    std::size_t depth = 0;   ///< slots in use before
    std::size_t merges = 0;  ///< of them, the uppermost, complete nodes with this replica
    bool stays = false;      ///< in the leaf
  };
  struct Deal {
    std::vector<Turn> turns;
    std::vector<TreeNode> stack;  ///< nodes that are left after the last turn
    std::size_t slots = 0;
  };
  static Deal deal(const ReplicaSumSpec& spec);

  Device& device_;
  Collectives& collectives_;
  ReplicaSumSpec spec_;
  float* leaf_;
  std::vector<Turn> turns_;  ///< one for each owned replica
  std::vector<float*> slots_;
  std::vector<Part> parts_;    ///< data: the begin of the block
  std::vector<Part> shifted_;  ///< parts_ at the range that is reduced
};

}  // namespace convoy
