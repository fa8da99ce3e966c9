// SPDX-License-Identifier: Apache-2.0
#include "sync/group_average.hpp"

#include <algorithm>

namespace convoy {
namespace {

SyncSpec within_group(SyncSpec spec) {
  spec.replicas = spec.group.replicas;
  spec.wire = Wire::fp32;
  return spec;
}

SyncParts within_group(SyncParts parts) {
  return {parts.backend, *parts.group, parts.plan, parts.layout, parts.gradients, parts.group};
}

/// The replicas of one group that this rank has, numbered within it.
ReplicaRun within_group(const ReplicaRun& run, int group) { return {run.first % group, std::min(run.count, group)}; }

}  // namespace

Index group_average_floats(const SyncSpec& spec, const SetLayout& layout, const ReplicaRun& run) {
  return average_floats(within_group(spec), layout, within_group(run, spec.group.replicas));
}

GroupAverage::GroupAverage(const SyncSpec& spec, const SyncParts& parts, const ReplicaRun& run)
    : momentum_(spec.momentum),
      backend_(parts.backend),
      at_once_(static_cast<std::size_t>(std::min(run.count, spec.group.replicas))),
      average_(within_group(spec), within_group(parts), within_group(run, spec.group.replicas), nullptr) {}

void GroupAverage::average(std::span<const ParameterSet> sets, std::span<const Index> samples) {
  for (std::size_t begin = 0; begin < sets.size(); begin += at_once_) {
    const auto group = sets.subspan(begin, at_once_);
    if (!average_.weigh(group, samples.subspan(begin, at_once_))) continue;
    average_.take_values(group);
    if (momentum_ == MomentumPolicy::average) average_.take_optimiser(group);
    if (momentum_ == MomentumPolicy::reset) average_.clear_optimiser();
    average_.finish();
    for (const ParameterSet& set : group) {
      average_.copy_to(
          set, momentum_ == MomentumPolicy::keep ? SetAverage::Optimiser::keep : SetAverage::Optimiser::replace);
      backend_.refresh(set);
    }
  }
}

}  // namespace convoy
