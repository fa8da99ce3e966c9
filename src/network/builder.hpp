// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "network/graph.hpp"
#include "network/models.hpp"

namespace convoy {

/// Writes nodes one after another, with names, parameters and initialisers, so that a model file reads like the paper's
/// figure. `in` of an operation is filled from what it reads.
class GraphBuilder {
 public:
  /// Throws Error(usage) for an activation or initialiser that doesn't exist.
  GraphBuilder(const GraphSpec& spec, ActivationKind default_activation);

  NodeId input();
  NodeId convolution(const std::string& name, NodeId from, Convolution attributes);
  /// With a start of its own, unless the spec names an initialiser.
  NodeId convolution(const std::string& name, NodeId from, Convolution attributes, Initialiser start);
  NodeId batch_norm(const std::string& name, NodeId from);
  /// The network's activation: the spec's, else the default.
  NodeId activation(const std::string& name, NodeId from);
  /// The spec's activation, else this one: for networks with several.
  NodeId activation(const std::string& name, NodeId from, ActivationKind otherwise);
  /// A hidden layer. Weight: He's normal of the fan-in, or Glorot's uniform under tanh, unless the spec names an
  /// initialiser.
  NodeId linear(const std::string& name, NodeId from, Index out);
  /// Squeeze and excitation (Hu et al. 2018): scales channels by a gate, which two 1x1 convolutions with `inside`
  /// between them make of the means of all channels.
  struct Excitation {
    Index squeezed = 0;  ///< channels between the convolutions
    ActivationKind inside = ActivationKind::relu;
    GateKind gate = GateKind::sigmoid;
  };
  NodeId excite(const std::string& name, NodeId from, const Excitation& attributes);
  /// How the weight of such a node starts unless the network says otherwise. `last`: it makes the classes.
  enum class Place : std::uint8_t { inside, last };
  Initialiser usual_start(const Attributes& operation, Index in, Place place) const;
  /// Any operation. `weight`: how parameters of that kind start.
  NodeId append(const std::string& name, std::vector<NodeId> inputs, const Attributes& operation, Initialiser weight);
  /// Any other operation.
  NodeId apply(const std::string& name, NodeId from, Attributes operation);
  NodeId apply(const std::string& name, std::vector<NodeId> from, Attributes operation);
  /// The last linear layer, and the loss on it. Weight: uniform within 1/sqrt(in) as in torchvision, unless the spec
  /// names an initialiser.
  Graph classify(const std::string& name, NodeId from, const std::string& model);
  /// The last linear layer of an auxiliary head, and its loss times `weight`. Evaluation leaves out what the logits
  /// don't depend on.
  void classify_aside(const std::string& name, NodeId from, float weight);
  /// The loss on logits that no linear layer makes.
  Graph finish(NodeId logits, const std::string& model);

  /// Channels of a node's output, for the spec's image size.
  Index channels(NodeId node) const { return shapes_.at(static_cast<std::size_t>(node)).c; }
  Index values(NodeId node) const { return shapes_.at(static_cast<std::size_t>(node)).count(); }
  /// The weight of this node starts at zero, so that a residual branch that ends with it starts as zero.
  void start_at_zero(NodeId node);
  /// The weight of this node, or the scale of a norm, never trains.
  void fix(NodeId node);

 private:
  NodeId last_linear(const std::string& name, NodeId from);

  const GraphSpec& spec_;
  Norms norms_;
  Activation activation_;
  Initialiser convolution_start_, linear_start_;
  Graph graph_;
  std::vector<Shape> shapes_;  ///< of every node's output
};

}  // namespace convoy
