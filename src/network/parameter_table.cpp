// SPDX-License-Identifier: Apache-2.0
#include "network/parameter_table.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>

#include "core/errors.hpp"
#include "network/freeze.hpp"
#include "network/patterns.hpp"
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

/// Calls change(row, multiplier) for the rows that each multiplier matches, in the order of the multipliers.
template <class Multiplier, class Change>
void for_each_match(const Graph& graph, const char* option, const std::vector<Multiplier>& multipliers,
                    std::vector<Parameter>& rows, const Change& change) {
  for (const Multiplier& multiplier : multipliers) {
    const std::set<std::string> meant = find_parameters(graph, option, multiplier.pattern);
    for (Parameter& row : rows)
      if (meant.count(row.name) > 0) change(row, multiplier);
  }
}

void multiply(const Graph& graph, const PlanSpec& spec, std::vector<Parameter>& rows) {
  for_each_match(graph, "--lr-mult", spec.rate_multipliers, rows, [](Parameter& row, const RateMultiplier& multiplier) {
    row.rate_multiplier = multiplier.factor;
    row.rate_ends = multiplier.ends;
  });
  for_each_match(graph, "--decay-mult", spec.decay_multipliers, rows,
                 [&spec](Parameter& row, const DecayMultiplier& multiplier) {
                   row.decay = decay_of(row.kind, spec) * multiplier.factor;
                 });
}

/// Takes the next `count` floats at `at` and moves it to the next multiple of 16 floats.
Range take(Index& at, Index count) {
  const Range range{at, count};
  at = align_floats(range.end());
  return range;
}

}  // namespace

ParameterTable make_parameter_table(const Graph& graph, const PlanSpec& spec) {
  const std::set<std::string> frozen = find_frozen(graph, spec.frozen);
  const std::vector<const Node*> last = class_layers(graph);
  ParameterTable table;
  for (std::size_t node = graph.nodes.size(); node-- > 0;)
    for (const ParameterSpec& parameter : graph.nodes[node].parameters)
      table.rows.push_back({.name = parameter.name,
                            .range = {0, parameter.count()},
                            .kind = parameter.kind,
                            .shape = parameter.shape,
                            .initialiser = parameter.initialiser,
                            .decay = decay_of(parameter.kind, spec),
                            .trainable = frozen.count(parameter.name) == 0,
                            .makes_classes = std::find(last.begin(), last.end(), &graph.nodes[node]) != last.end(),
                            .node = static_cast<NodeId>(node)});
  if (table.rows.empty()) fail(Exit::usage, "graph '{}' has no parameters (nothing to train)", graph.model);
  multiply(graph, spec, table.rows);
  std::stable_partition(table.rows.begin(), table.rows.end(), [](const Parameter& row) { return row.trainable; });
  Index at = 0, trained = 0;
  for (Parameter& row : table.rows) {
    row.range = take(at, row.range.count);
    if (row.trainable) trained = at;
  }
  table.parameters = {0, at};
  table.frozen_floats = at - trained;

  const auto is_frozen = [&](const ParameterSpec& parameter) { return frozen.count(parameter.name) > 0; };
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    const auto& parameters = graph.nodes[node].parameters;
    if (const auto* norm = as<BatchNorm>(graph.nodes[node]))
      table.norms.push_back({.name = graph.nodes[node].name,
                             .node = static_cast<NodeId>(node),
                             .mean = {0, norm->channels},
                             .variance = {0, norm->channels},
                             .frozen = std::all_of(parameters.begin(), parameters.end(), is_frozen)});
  }
  std::stable_partition(table.norms.begin(), table.norms.end(), [](const auto& norm) { return !norm.frozen; });
  Index running = 0, in_tail = 0, exchanged = 0;
  for (NormStatistics& norm : table.norms) {
    norm.mean = take(running, norm.mean.count);
    norm.variance = take(running, norm.variance.count);
    if (norm.frozen) continue;
    in_tail = running;
    exchanged += exchange_vectors * align_floats(norm.mean.count);
  }
  table.statistics = {trained, in_tail};
  table.frozen_statistics = running - in_tail;
  table.flags = {table.statistics.end(), spec.replicas};
  table.exchange = {align_floats(table.flags.end()), spec.sync_bn ? exchanged : 0};
  return table;
}

Index trained_parameters(const ParameterTable& table) {
  Index count = 0;
  for (const Parameter& row : table.rows) count += row.trainable ? row.range.count : 0;
  return count;
}

const Parameter* ParameterTable::find(const std::string& name) const {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const Parameter& p) { return p.name == name; });
  return row == rows.end() ? nullptr : &*row;
}

}  // namespace convoy
