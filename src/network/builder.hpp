// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "network/graph.hpp"
#include "network/models.hpp"

namespace convoy {

/// Writes nodes one after another, with names, parameters and initialisers, so that a model file reads like the paper's
/// figure. Channels are carried along: `in` of an operation is filled from what it reads.
class GraphBuilder {
 public:
  /// Throws Error(usage) for an activation or initialiser that doesn't exist.
  GraphBuilder(const GraphSpec& spec, Curve default_activation);

  NodeId input();
  NodeId convolution(const std::string& name, NodeId from, Convolution attributes);
  NodeId batch_norm(const std::string& name, NodeId from);
  /// The network's activation: the spec's, else the default.
  NodeId activation(const std::string& name, NodeId from);
  /// One that no option changes.
  NodeId curve(const std::string& name, NodeId from, Curve curve);
  NodeId pool(const std::string& name, NodeId from, Pool attributes);
  NodeId local_response_norm(const std::string& name, NodeId from, LocalResponseNorm attributes);
  NodeId dropout(const std::string& name, NodeId from, float rate);
  NodeId global_average_pool(const std::string& name, NodeId from);
  /// The count of a flattened image depends on the spec's image size.
  NodeId flatten(const std::string& name, NodeId from);
  /// A hidden layer. Weight: He's normal of the fan-in, or Glorot's uniform under tanh, unless the spec names an
  /// initialiser.
  NodeId linear(const std::string& name, NodeId from, Index out);
  NodeId add(const std::string& name, NodeId branch, NodeId shortcut);
  /// The last linear layer, and the loss on it. Weight: uniform within 1/sqrt(in) as in torchvision, unless the spec
  /// names an initialiser.
  Graph classify(const std::string& name, NodeId from, const std::string& model);

  Index channels(NodeId node) const { return channels_.at(static_cast<std::size_t>(node)); }
  /// The weight of this node starts at zero, so that a residual branch that ends with it starts as zero.
  void start_at_zero(NodeId node);

 private:
  NodeId append(const std::string& name, Attributes attributes, std::vector<NodeId> inputs, Index channels);
  void add_parameter(NodeId node, const char* suffix, Kind kind, std::vector<Index> shape, Initialiser initialiser);
  NodeId append_linear(const std::string& name, NodeId from, Index out, Initialiser initialiser);

  const GraphSpec& spec_;
  Activation activation_;
  Initialiser convolution_start_, linear_start_;
  Graph graph_;
  std::vector<Index> channels_;  ///< of every node's output
};

}  // namespace convoy
