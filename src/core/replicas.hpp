// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <vector>

#include "core/deal.hpp"

namespace convoy {

/// The replicas [first, first + count) that a rank owns.
struct ReplicaRun {
  int first = 0, count = 0;
};

/// Ranks beyond the number of replicas own none but take part in every reduction.
constexpr ReplicaRun deal_replicas(int replicas, int ranks, int rank) {
  const Range run = deal(replicas, ranks, rank);
  return {static_cast<int>(run.begin), static_cast<int>(run.count)};
}

constexpr int rank_of_replica(int replicas, int ranks, int replica) {
  const int share = replicas / ranks, rest = replicas % ranks, cut = rest * (share + 1);
  return replica < cut ? replica / (share + 1) : rest + (replica - cut) / std::max(share, 1);
}

/// The floats that a rank adds of a sum of `count`: operands of kernels are aligned, and no slice is longer than the
/// first.
constexpr Range slice_of_rank(int rank, int ranks, Index count) {
  const Index each = align_floats((count + ranks - 1) / ranks), begin = std::min(rank * each, count);
  return {begin, std::min(each, count - begin)};
}

// The fixed binary tree over the replicas 0 ... W-1 that makes sums independent of the number of ranks. A node is an
// aligned power-of-two run of replicas, the sum of its two halves. Where W is no power of two the roots that remain are
// added from the right: ((0 1)(2 3)) + ((4 5) + 6).

/// Replicas [first, first + size); size is a power of two that divides first.
struct TreeNode {
  int first = 0, size = 1;
  bool operator==(const TreeNode&) const = default;
};

/// The two halves of a larger node.
constexpr bool are_siblings(const TreeNode& lower, const TreeNode& upper) {
  return lower.size == upper.size && lower.first % (2 * lower.size) == 0;
}

/// A run of replicas cut into the largest nodes, in order: what a rank can add without the others.
inline std::vector<TreeNode> tree_nodes(const ReplicaRun& run) {
  std::vector<TreeNode> nodes;
  for (int first = run.first, end = run.first + run.count; first < end; first += nodes.back().size) {
    int size = 1;
    while (first % (2 * size) == 0 && first + 2 * size <= end) size *= 2;
    nodes.push_back({first, size});
  }
  return nodes;
}

/// One addition of the tree: node `to` += node `from`, as positions in the list of nodes.
struct TreeAddition {
  int to = 0, from = 0;
};

/// The additions, in order, that leave the sum of all replicas in nodes[0]. `nodes` covers 0 ... W-1 in order.
inline std::vector<TreeAddition> tree_additions(const std::vector<TreeNode>& nodes) {
  struct Entry {
    TreeNode node;
    int position;
  };
  std::vector<Entry> stack;
  std::vector<TreeAddition> additions;
  const auto add_top = [&] {
    const Entry upper = stack.back();
    stack.pop_back();
    additions.push_back({stack.back().position, upper.position});
    stack.back().node.size += upper.node.size;
  };
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    stack.push_back({nodes[static_cast<std::size_t>(i)], i});
    while (stack.size() > 1 && are_siblings(stack[stack.size() - 2].node, stack.back().node)) add_top();
  }
  while (stack.size() > 1) add_top();
  return additions;
}

}  // namespace convoy
