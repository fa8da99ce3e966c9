// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>
#include <string>
#include <vector>

#include "network/graph.hpp"

namespace convoy {

/// A step that no run reaches.
inline constexpr Index never = std::numeric_limits<Index>::max();

struct Parameter {
  std::string name;
  Range range;  ///< in the values block and, if it trains, at the same place in the gradient block and in each slot of
                ///< the optimiser; count = product of shape
  Kind kind = Kind::weight;
  std::vector<Index> shape;
  Initialiser initialiser;
  float decay = 0;  ///< weight decay of this tensor, all factors included
  float rate_multiplier = 1;
  Index rate_ends = never;  ///< from this step on its learning rate is 0
  bool trainable = true;
  bool makes_classes = false;  ///< of the network's last layer, or of an auxiliary head's
  NodeId node = 0;

  /// To a matrix rule: of shape[0] rows. The layer that makes the classes is none, as the rule's authors have it.
  bool is_matrix() const { return trainable && kind == Kind::weight && shape.size() > 1 && !makes_classes; }
};

/// Running statistics of one batch norm, ranges inside the statistics block (and inside the tail, the same order,
/// unless it is frozen).
struct NormStatistics {
  std::string name;  ///< `bn1`: keys bn1.running_mean, bn1.running_var
  NodeId node = 0;
  Range mean, variance;
  bool frozen = false;  ///< training normalises with them, as evaluation does, and leaves them as they are
};

/// Vectors of align_floats(channels) that a synchronised batch norm has in the exchange area. lowering::ExchangeRanges
/// says what each is for.
constexpr Index exchange_vectors = 8;

/// The gradient block: parameters | tail: batch statistics, one flag a replica | exchange of synchronised batch norm.
/// Rows stand in the order in which gradients become final (backward order), frozen ones behind all that train: they
/// have values, and neither gradients nor optimiser state. Every tensor starts on 16 floats.
struct ParameterTable {
  std::vector<Parameter> rows;
  std::vector<NormStatistics> norms;  ///< in forward order, frozen ones behind the others
  Range parameters;                   ///< begin 0: of the values block
  Index frozen_floats = 0;            ///< at the end of `parameters`
  Range statistics;  ///< the tail: for each norm its batch mean and unbiased variance, times the replica's weight
  Index frozen_statistics = 0;  ///< floats of the statistics block behind those that the tail is folded into
  Range flags;                  ///< one float a replica: 0 = finite
  Range exchange;               ///< synchronised batch norm: for each norm exchange_vectors
  Index block() const { return exchange.end(); }
  /// Floats that train: of the gradient block's parameters, and of a slot.
  Index trained_floats() const { return parameters.count - frozen_floats; }
  /// Floats of the statistics block of a set.
  Index running_floats() const { return statistics.count + frozen_statistics; }
  const Parameter* find(const std::string& name) const;
};

struct PlanSpec;

/// Numbers that train, without the padding between tensors.
Index trained_parameters(const ParameterTable& table);

/// Rows in reverse of the graph's order, of one node as its parameters stand there; then tail, flags and, with
/// spec.sync_bn, the exchange area. The graph must be valid. Throws Error(usage) as find_frozen() does.
ParameterTable make_parameter_table(const Graph& graph, const PlanSpec& spec);

}  // namespace convoy
