// SPDX-License-Identifier: Apache-2.0
// A network as its builder wrote it: nodes in topological order, torchvision names. Knows no backend; image sizes enter
// only where a linear layer's weight depends on one (GraphSpec).
#pragma once
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "network/operations/operations.hpp"
#include "network/parameter_spec.hpp"

namespace convoy {

using NodeId = std::int32_t;

struct Node {
  std::string name;  ///< torchvision module path, `layer1.0.conv1`; generated where a function has none
  Attributes attributes;
  std::vector<NodeId> inputs;
  std::vector<ParameterSpec> parameters;
};

template <class T>
const T* as(const Node& node) {
  return std::get_if<T>(&node.attributes);
}

struct Graph {
  std::string model;  ///< full name, printed in logs: `resnet50 v1.5`
  Index classes = 0;
  /// nodes[0] is the Input, the last one the Loss; its input are the logits. A Loss before it is that of an auxiliary
  /// head.
  std::vector<Node> nodes;
  NodeId logits() const { return nodes.back().inputs.at(0); }
};

/// The node that owns the last parameters: the layer that makes the classes. Null: nothing has any.
const Node* last_layer(const Graph& graph);
/// The layers that make classes: last_layer(), then that of each auxiliary head.
std::vector<const Node*> class_layers(const Graph& graph);
/// Per node: whether the logits depend on it, or it is the loss on them. The others, auxiliary heads, exist in training
/// only.
std::vector<bool> nodes_of_logits(const Graph& graph);

/// Output shape of every node for images of height x width; of the loss: 1. Throws Error(usage) naming the node where
/// sizes don't fit. Whether the graph is one at all, make_plan() checks.
std::vector<Shape> infer_shapes(const Graph& graph, Index height, Index width);

/// The operation with all its attributes, on one line: `convolution 64 -> 128, 3x3, stride 2, pad 1, groups 1`.
std::string describe(const Attributes& attributes);
/// What the operation reads and owns.
Contract contract_of(const Attributes& attributes);

/// Per node: whether a parameter that isn't frozen lies at or before it, so that training needs the gradient of its
/// output.
std::vector<bool> needs_gradient(const Graph& graph, const std::set<std::string>& frozen = {});

/// Multiply-adds of one forward pass of one sample (convolutions and linear layers), and parameters.
struct Cost {
  double macs = 0;  ///< up to the logits, without auxiliary heads; 1 multiply-add = 1 MAC = 2 FLOP
  /// Forward, data gradients and weight gradients, of auxiliary heads too; none for the image, and none for what is
  /// frozen.
  double training_flops = 0;
  Index parameters = 0;
};
Cost cost_of(const Graph& graph, Index height, Index width, const std::set<std::string>& frozen = {});
/// Multiply-accumulates of one node alone, for one sample.
double macs_of(const Node& node, const Shape& output);

}  // namespace convoy
