// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <vector>

#include "comm/collectives.hpp"
#include "core/replica_tree.hpp"

namespace convoy {

/// The part of a reduction that one rank can do alone, queued on its device.
class LocalSum {
 public:
  LocalSum(Device& device, std::vector<TreeNode> nodes, bool reproducible)
      : device_(device), nodes_(std::move(nodes)), reproducible_(reproducible) {}

  const std::vector<TreeNode>& nodes() const { return nodes_; }

  /// out = sum of this rank's parts. From the last one back, which for the nodes of all replicas is the order of the
  /// tree. False: there was nothing to do.
  bool add(const Reduction& reduction) const;
  /// The parts of a reproducible sum are the nodes of this rank's run.
  void require_tree(std::span<const Part> parts) const;

 private:
  Device& device_;
  std::vector<TreeNode> nodes_;
  bool reproducible_;
};

}  // namespace convoy
