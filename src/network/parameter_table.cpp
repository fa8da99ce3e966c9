// SPDX-License-Identifier: Apache-2.0
#include "network/parameter_table.hpp"

#include <algorithm>
#include <cstddef>

#include "core/errors.hpp"
#include "network/plan.hpp"

namespace convoy {
namespace {

float decay_of(Kind kind, const PlanSpec& spec) {
  switch (kind) {
    case Kind::weight:
      return spec.weight_decay;
    case Kind::bias:
      return spec.bias_weight_decay;
    case Kind::norm_scale:
    case Kind::norm_shift:
      return spec.norm_weight_decay;
  }
  return 0;
}

/// Takes the next `count` floats at `at` and moves it to the next multiple of 16 floats.
Range take(Index& at, Index count) {
  const Range range{at, count};
  at = align_floats(range.end());
  return range;
}

}  // namespace

ParameterTable make_parameter_table(const Graph& graph, const PlanSpec& spec) {
  ParameterTable table;
  Index at = 0;
  for (std::size_t node = graph.nodes.size(); node-- > 0;)
    for (const ParameterSpec& parameter : graph.nodes[node].parameters)
      table.rows.push_back({.name = parameter.name,
                            .range = take(at, parameter.count()),
                            .kind = parameter.kind,
                            .shape = parameter.shape,
                            .initialiser = parameter.initialiser,
                            .decay = decay_of(parameter.kind, spec),
                            .node = static_cast<NodeId>(node)});
  if (table.rows.empty()) fail(Exit::usage, "graph '{}' has no parameters (nothing to train)", graph.model);
  table.parameters = {0, at};

  Index in_tail = 0, exchanged = 0;
  for (std::size_t node = 0; node < graph.nodes.size(); ++node)
    if (const auto* norm = as<BatchNorm>(graph.nodes[node])) {
      const Range mean = take(in_tail, norm->channels), variance = take(in_tail, norm->channels);
      table.norms.push_back({graph.nodes[node].name, static_cast<NodeId>(node), mean, variance});
      exchanged += exchange_vectors * align_floats(norm->channels);
    }
  table.statistics = {table.parameters.end(), in_tail};
  table.flags = {table.statistics.end(), spec.replicas};
  table.exchange = {align_floats(table.flags.end()), spec.sync_bn ? exchanged : 0};
  return table;
}

const Parameter* ParameterTable::find(const std::string& name) const {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const Parameter& p) { return p.name == name; });
  return row == rows.end() ? nullptr : &*row;
}

}  // namespace convoy
