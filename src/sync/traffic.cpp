// SPDX-License-Identifier: Apache-2.0
#include "sync/traffic.hpp"

#include <algorithm>

#include "backend/compression_layout.hpp"
#include "core/errors.hpp"
#include "sync/modes.hpp"
#include "sync/set_average.hpp"

namespace convoy {
namespace {

void add_gradients(Traffic& traffic, const SyncSpec& spec, const Plan& plan) {
  const Index border = plan.table.trained_floats();
  const auto& rows = plan.table.rows;
  for (const Range& bucket : plan.buckets) {
    // Layers are taken to need the same time each.
    const auto done =
        std::count_if(rows.begin(), rows.end(), [&](const Parameter& row) { return row.range.begin < bucket.end(); });
    const double ready = static_cast<double>(done) / static_cast<double>(std::max<std::size_t>(rows.size(), 1));
    if (spec.wire == Wire::fp32) {
      traffic.sums.push_back({bucket.count, Wire::fp32, ready});
      continue;
    }
    traffic.sums.push_back({std::min(bucket.end(), border) - bucket.begin, spec.wire, ready});
    if (bucket.end() > border) traffic.sums.push_back({bucket.end() - border, Wire::fp32, ready});
  }
}

/// Adds the traffic of compressed gradients, which starts after backward.
void add_compressed(Traffic& traffic, const SyncSpec& spec, const Plan& plan) {
  const CompressionLayout layout = compression_layout(plan.table, spec.compression);
  traffic.sums.push_back({layout.plain_floats + layout.left_floats});
  if (layout.basis_floats > 0) traffic.sums.push_back({layout.basis_floats});
  traffic.gathered_bytes = spec.replicas * layout.message_bytes;
}

void add_pieces(std::vector<Traffic::Sum>& sums, Index floats, Wire wire) {
  for (Index begin = 0; begin < floats; begin += averaged_floats)
    sums.push_back({std::min(averaged_floats, floats - begin), wire});
}

/// One average of the sets of so many replicas. A late one waits for their reports before it starts, and for the
/// variances, which need the average means, when it ends.
void add_average(std::vector<Traffic::Sum>& sums, const SyncSpec& spec, const SetLayout& layout, int replicas,
                 Wire wire) {
  sums.push_back({.floats = report_floats * replicas, .waited = true});
  if (layout.moving.count > 0) {
    sums.push_back({.floats = layout.moving.count});                  // means
    sums.push_back({.floats = layout.moving.count, .waited = true});  // variances
  }
  add_pieces(sums, layout.trained.count, wire);
  if (spec.momentum == MomentumPolicy::average) add_pieces(sums, layout.optimiser.count, Wire::fp32);
}

/// Ranks that share this rank's group.
int ranks_of_group(const SyncSpec& spec) {
  int ranks = 0;
  SyncSpec other = spec;
  for (other.rank = 0; other.rank < spec.ranks; ++other.rank)
    if (group_of_rank(other) == group_of_rank(spec)) ++ranks;
  return ranks;
}

void add_weights(Traffic& traffic, const SyncSpec& spec, const SetLayout& layout, Transport transport) {
  traffic.start = spec.local_start;
  traffic.beside_steps = spec.overlap;
  add_average(traffic.sums, spec, layout, spec.replicas, spec.wire);
  if (!spec.group.is_on()) return;
  traffic.group.times = spec.local_steps / spec.group.steps - 1;  // the last one is that of all
  traffic.group.ranks = ranks_of_group(spec);
  traffic.group.in_a_tree = adds_in_tree(transport, spec.reproducible, Wire::fp32);
  if (traffic.group.ranks > 1) add_average(traffic.group.sums, spec, layout, spec.group.replicas, Wire::fp32);
}

}  // namespace

Traffic traffic_of(const SyncSpec& spec, const Plan& plan, const SetLayout& layout, Transport transport) {
  Traffic traffic{.sums = {}, .in_a_tree = adds_in_tree(transport, spec.reproducible, spec.wire)};
  switch (spec.mode) {
    case SyncMode::gradients:
      traffic.beside_backward = !spec.compression.is_on();
      spec.compression.is_on() ? add_compressed(traffic, spec, plan) : add_gradients(traffic, spec, plan);
      return traffic;
    case SyncMode::weights:
      traffic.steps = spec.local_steps;
      if (spec.replicas > 1) add_weights(traffic, spec, layout, transport);
      return traffic;
  }
  fail(Exit::internal, "a sync policy without traffic");
}

Index largest_sum(const Traffic& traffic, Wire wire) {
  Index largest = 0;
  for (const Traffic::Sum& sum : traffic.sums)
    if (sum.wire == wire) largest = std::max(largest, sum.floats);
  return largest;
}

Index bytes_sent(const Traffic& traffic, int ranks) {
  Index bytes = (ranks - 1) * traffic.gathered_bytes;
  for (const Traffic::Sum& sum : traffic.sums) bytes += 2 * (ranks - 1) * sum.floats * bytes_of(sum.wire);
  return bytes;
}

Index group_bytes_sent(const Traffic& traffic) {
  Index bytes = 0;
  for (const Traffic::Sum& sum : traffic.group.sums)
    bytes += 2 * (traffic.group.ranks - 1) * sum.floats * bytes_of(sum.wire);
  return traffic.group.times * bytes;
}

std::string name_of_policy(const SyncSpec& spec) {
  std::string name = describe(spec);
  if (spec.mode == SyncMode::weights && spec.local_steps > 1 && spec.local_start > 0)
    name += fmt::format(", before step {} every step", spec.local_start);
  return name;
}

std::vector<SyncSpec> policies_beside(const SyncSpec& own, Index local_steps) {
  std::vector<SyncSpec> all{own};
  const auto add = [&](SyncMode mode, Index steps, Wire wire) {
    SyncSpec spec = own;
    spec.mode = mode;
    spec.local_steps = steps;
    spec.wire = wire;
    spec.group = {};
    spec.overlap = false;
    spec.local_start = 0;
    if (mode == SyncMode::gradients || steps == 1) spec.outer = {};
    const auto same = [&](const SyncSpec& other) { return name_of_policy(other) == name_of_policy(spec); };
    if (std::none_of(all.begin(), all.end(), same)) all.push_back(spec);
  };
  const Index seldom = own.mode == SyncMode::weights && own.local_steps > 1 ? own.local_steps : local_steps;
  for (const Wire wire : {Wire::fp32, Wire::bf16}) {
    add(SyncMode::gradients, 1, wire);
    add(SyncMode::weights, 1, wire);
    add(SyncMode::weights, seldom, wire);
  }
  return all;
}

}  // namespace convoy
