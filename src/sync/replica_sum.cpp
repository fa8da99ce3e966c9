// SPDX-License-Identifier: Apache-2.0
#include "sync/replica_sum.hpp"

#include <algorithm>
#include <utility>

namespace convoy {

ReplicaSum::Deal ReplicaSum::deal(const ReplicaSumSpec& spec) {
  Deal deal;
  auto& [turns, stack, slots] = deal;
  for (int i = 0; i < spec.run.count; ++i) {
    Turn turn{.depth = stack.size(), .stays = i == spec.run.count - 1 && spec.last_leaf == LastLeaf::stays};
    TreeNode node{spec.run.first + i, 1};
    while (!stack.empty() && (!spec.reproducible || are_siblings(stack.back(), node))) {
      node = {stack.back().first, stack.back().size + node.size};
      stack.pop_back();
      ++turn.merges;
    }
    stack.push_back(node);
    if (!turn.stays) slots = std::max(slots, stack.size());
    turns.push_back(turn);
  }
  return deal;
}

Index ReplicaSum::slots(const ReplicaSumSpec& spec) { return static_cast<Index>(deal(spec).slots); }

ReplicaSum::ReplicaSum(Device& device, Collectives& collectives, const ReplicaSumSpec& spec, float* leaf)
    : device_(device), collectives_(collectives), spec_(spec), leaf_(leaf) {
  Deal dealt = deal(spec);
  turns_ = std::move(dealt.turns);
  const std::vector<TreeNode>& stack = dealt.stack;
  for (std::size_t i = 0; i < dealt.slots; ++i) slots_.push_back(device.allocate(spec.count));
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const bool in_leaf = i + 1 == stack.size() && spec.last_leaf == LastLeaf::stays;
    parts_.push_back({stack[i].first, stack[i].size, in_leaf ? leaf : slots_[i]});
  }
  shifted_ = parts_;
}

void ReplicaSum::add(int replica, const Range& range, Wire wire) {
  const Turn& turn = turns_.at(static_cast<std::size_t>(replica - spec_.run.first));
  const bool rounds = spec_.reproducible && wire != Wire::fp32;
  float* leaf = leaf_ + range.begin;
  if (rounds) device_.round(leaf, range.count, wire);
  for (std::size_t i = 0; i < turn.merges; ++i) {
    float* slot = slots_[turn.depth - 1 - i] + range.begin;
    // The result goes where it belongs; additions commute bit for bit.
    const bool to_slot = i + 1 == turn.merges && !turn.stays;
    float *to = to_slot ? slot : leaf, *from = to_slot ? leaf : slot;
    device_.add(to, from, range.count);
    if (rounds) device_.round(to, range.count, wire);
  }
  if (turn.merges == 0 && !turn.stays) device_.copy(slots_[turn.depth] + range.begin, leaf, range.count, 1.0F);
}

Ticket ReplicaSum::reduce(const Range& range, const char* what, Wire wire) {
  for (std::size_t i = 0; i < parts_.size(); ++i) shifted_[i].data = parts_[i].data + range.begin;
  return collectives_.submit({.out = leaf_ + range.begin,
                              .parts = shifted_,
                              .count = range.count,
                              .after = device_.record(),
                              .what = what,
                              .wire = wire});
}

}  // namespace convoy
