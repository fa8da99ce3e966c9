// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "sync/set_average.hpp"

namespace convoy {

/// Floats that a GroupAverage allocates.
Index group_average_floats(const SyncSpec& spec, const SetLayout& layout, const ReplicaRun& run);

/// The averages of groups of replicas, between two averages of all (as hierarchical local SGD: Lin et al., "Don't use
/// large mini-batches, use local SGD", ICLR 2020, appendix). Ranks that share a group average it together, over a
/// communicator of their own; whole groups are averaged one after the other. Weights always travel in fp32.
class GroupAverage {
 public:
  /// Allocates a set. `run`: this rank's replicas.
  GroupAverage(const SyncSpec& spec, const SyncParts& parts, const ReplicaRun& run);

  /// Collective. Among the ranks of a group. Replaces the sets of its replicas by their average, weighted by samples,
  /// as `momentum` says of the optimiser state. `sets`, `samples`: of the owned replicas in order.
  void average(std::span<const ParameterSet> sets, std::span<const Index> samples);

 private:
  MomentumPolicy momentum_;
  Backend& backend_;
  std::size_t at_once_;  ///< this rank's replicas of one group
  SetAverage average_;
};

}  // namespace convoy
