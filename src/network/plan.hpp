// SPDX-License-Identifier: Apache-2.0
// The graph put in order: the same for every backend, rank and batch size. No fusion here: each backend matches its own
// patterns on the nodes.
#pragma once
#include <string>
#include <vector>

#include "network/graph.hpp"
#include "network/parameter_table.hpp"

namespace convoy {

struct Plan {
  Graph graph;
  ParameterTable table;
  std::vector<NodeId> schedule;  ///< forward order
  std::vector<NodeId> last_use;  ///< per node: the last node of the schedule that reads its output; of the loss: itself
  /// Ranges of the gradient block, without gaps, in the order in which they become final; the last ends with the flags.
  std::vector<Range> buckets;
  bool sync_bn = false;
  /// Digest of names, shapes, attributes and the order of the table: equal on all ranks, stored in checkpoints. What a
  /// run may change without another model stays out: replicas, buckets, decay, initialisers, label smoothing, what is
  /// frozen.
  std::uint64_t digest = 0;
};

/// Of the parameters that a pattern matches (patterns.hpp): the learning rate is multiplied by `factor`, and from step
/// `ends` on it is 0.
struct RateMultiplier {
  std::string pattern;
  float factor = 1;
  Index ends = never;
};

/// Of the parameters that a pattern matches: the weight decay is multiplied by `factor`.
struct DecayMultiplier {
  std::string pattern;
  float factor = 1;
};

struct PlanSpec {
  int replicas = 1;               ///< W: number of flags
  Index bucket_floats = 1 << 21;  ///< a bucket is closed at the first end of a tensor at or past this size
  float weight_decay = 0;         ///< of weights
  float norm_weight_decay = 0;    ///< of norm scale and shift
  float bias_weight_decay = 0;
  bool sync_bn = false;
  std::vector<std::string> frozen = {};  ///< patterns: find_frozen()
  /// Of several that match, the last one holds.
  std::vector<RateMultiplier> rate_multipliers = {};
  std::vector<DecayMultiplier> decay_multipliers = {};
};

/// Throws Error(usage), naming node and parameter, for a graph that isn't in topological order, has unknown or unread
/// nodes, duplicate names, or parameters that don't fit their operation; and as
/// find_frozen() does; and for a multiplier that matches nothing.
Plan make_plan(Graph graph, const PlanSpec& spec);

/// Fills `values` (table.parameters.count floats) as f(seed, parameter name), so that ranks and table order don't
/// matter.
void initialise_parameters(const ParameterTable& table, std::uint64_t seed, float* values);
/// Running mean 0, variance 1. `statistics`: table.running_floats() floats.
void initialise_statistics(const ParameterTable& table, float* statistics);

}  // namespace convoy
