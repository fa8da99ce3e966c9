// SPDX-License-Identifier: Apache-2.0
#include "network/plan.hpp"

#include <fmt/core.h>

#include <cstddef>
#include <numeric>
#include <utility>

#include "core/errors.hpp"
#include "core/hash.hpp"
#include "network/validate.hpp"

namespace convoy {
namespace {

std::vector<NodeId> find_last_use(const Graph& graph) {
  std::vector<NodeId> last_use(graph.nodes.size());
  std::iota(last_use.begin(), last_use.end(), NodeId{0});
  for (std::size_t reader = 0; reader < graph.nodes.size(); ++reader)
    for (const NodeId from : graph.nodes[reader].inputs)
      last_use[static_cast<std::size_t>(from)] = static_cast<NodeId>(reader);
  return last_use;
}

/// Buckets without gaps from 0 to the end of the flags. The tail never makes a bucket of its own: it is final together
/// with the first layers' gradients, and a message of its own would only cost latency.
std::vector<Range> cut_buckets(const ParameterTable& table, Index bucket_floats) {
  std::vector<Range> buckets;
  Index begin = 0;
  for (std::size_t i = 0; i + 1 < table.rows.size() && table.rows[i + 1].trainable; ++i) {
    const Index end = align_floats(table.rows[i].range.end());
    if (end - begin < bucket_floats) continue;
    buckets.push_back({begin, end - begin});
    begin = end;
  }
  buckets.push_back({begin, table.flags.end() - begin});
  return buckets;
}

std::uint64_t digest_of(const Graph& graph, const ParameterTable& table) {
  std::string text = fmt::format("{} classes\n", graph.classes);
  for (const Node& node : graph.nodes) {
    if (as<Loss>(node)) continue;
    text += fmt::format("{}: {} of", node.name, describe(node.attributes));
    for (const NodeId from : node.inputs) text += fmt::format(" {}", from);
    text += '\n';
  }
  for (const Parameter& row : table.rows) {
    text += fmt::format("{} {} {}", row.name, static_cast<int>(row.kind), row.range.begin);
    for (const Index side : row.shape) text += fmt::format(" {}", side);
    text += '\n';
  }
  for (const NormStatistics& norm : table.norms)
    text += fmt::format("{} {} {}\n", norm.name, norm.mean.begin, norm.variance.begin);
  return hash_text(text);
}

}  // namespace

Plan make_plan(Graph graph, const PlanSpec& spec) {
  if (spec.replicas < 1) fail(Exit::usage, "{} replicas (need at least 1)", spec.replicas);
  if (spec.bucket_floats < 1) fail(Exit::usage, "buckets of {} floats (need at least 1)", spec.bucket_floats);
  validate(graph);

  Plan plan;
  plan.graph = std::move(graph);
  plan.sync_bn = spec.sync_bn;
  plan.schedule.resize(plan.graph.nodes.size());
  std::iota(plan.schedule.begin(), plan.schedule.end(), NodeId{0});
  plan.last_use = find_last_use(plan.graph);
  plan.table = make_parameter_table(plan.graph, spec);
  plan.buckets = cut_buckets(plan.table, spec.bucket_floats);
  PlanSpec all_train = spec;
  all_train.frozen.clear();
  plan.digest = digest_of(plan.graph, spec.frozen.empty() ? plan.table : make_parameter_table(plan.graph, all_train));
  return plan;
}

}  // namespace convoy
