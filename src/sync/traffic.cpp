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

void add_pieces(Traffic& traffic, Index floats, Wire wire) {
  for (Index begin = 0; begin < floats; begin += averaged_floats)
    traffic.sums.push_back({std::min(averaged_floats, floats - begin), wire});
}

void add_weights(Traffic& traffic, const SyncSpec& spec, const SetLayout& layout) {
  traffic.sums.push_back({report_floats * spec.replicas});
  for (int i = 0; i < 2 && layout.moving.count > 0; ++i)  // means, then variances
    traffic.sums.push_back({layout.moving.count});
  add_pieces(traffic, layout.trained.count, spec.wire);
  if (spec.momentum == MomentumPolicy::average) add_pieces(traffic, layout.optimiser.count, Wire::fp32);
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
      if (spec.replicas > 1) add_weights(traffic, spec, layout);
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

std::vector<SyncSpec> policies_beside(const SyncSpec& own, Index local_steps) {
  std::vector<SyncSpec> all{own};
  const auto add = [&](SyncMode mode, Index steps, Wire wire) {
    SyncSpec spec = own;
    spec.mode = mode;
    spec.local_steps = steps;
    spec.wire = wire;
    if (mode == SyncMode::gradients || steps == 1) spec.outer = {};
    const auto same = [&](const SyncSpec& other) { return describe(other) == describe(spec); };
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
