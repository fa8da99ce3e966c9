// SPDX-License-Identifier: Apache-2.0
#include "network/graph.hpp"

#include <algorithm>
#include <cstddef>

#include "core/errors.hpp"

namespace convoy {

const Node* last_layer(const Graph& graph) {
  const auto found =
      std::find_if(graph.nodes.rbegin(), graph.nodes.rend(), [](const Node& node) { return !node.parameters.empty(); });
  return found == graph.nodes.rend() ? nullptr : &*found;
}

std::vector<const Node*> class_layers(const Graph& graph) {
  std::vector<const Node*> layers{last_layer(graph)};
  for (std::size_t i = 0; i + 1 < graph.nodes.size(); ++i) {
    if (as<Loss>(graph.nodes[i]) == nullptr) continue;
    const Node* node = &graph.nodes[i];
    while (node->parameters.empty() && !node->inputs.empty())
      node = &graph.nodes.at(static_cast<std::size_t>(node->inputs[0]));
    layers.push_back(node);
  }
  return layers;
}

std::vector<bool> nodes_of_logits(const Graph& graph) {
  std::vector<bool> needed(graph.nodes.size(), false);
  needed.back() = true;
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (const NodeId from : graph.nodes[i].inputs) needed.at(static_cast<std::size_t>(from)) = true;
  }
  return needed;
}

std::vector<Shape> infer_shapes(const Graph& graph, Index height, Index width) {
  if (height < 1 || width < 1) fail(Exit::usage, "images of {} x {} (need at least 1 x 1)", height, width);
  std::vector<Shape> shapes;
  shapes.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    NodeInputs inputs{.node = node.name, .shapes = {}, .image = {0, height, width}, .classes = graph.classes};
    for (const NodeId from : node.inputs) inputs.shapes.push_back(shapes.at(static_cast<std::size_t>(from)));
    shapes.push_back(std::visit([&](const auto& operation) { return operation.shape(inputs); }, node.attributes));
  }
  return shapes;
}

std::string describe(const Attributes& attributes) {
  return std::visit([](const auto& operation) { return operation.text(); }, attributes);
}

Contract contract_of(const Attributes& attributes) {
  return std::visit([](const auto& operation) { return operation.contract(); }, attributes);
}

namespace {

bool trains(const ParameterSpec& parameter, const std::set<std::string>& frozen) {
  return !parameter.fixed && frozen.count(parameter.name) == 0;
}

bool trains(const Node& node, const std::set<std::string>& frozen) {
  return std::any_of(node.parameters.begin(), node.parameters.end(),
                     [&](const ParameterSpec& parameter) { return trains(parameter, frozen); });
}

}  // namespace

std::vector<bool> needs_gradient(const Graph& graph, const std::set<std::string>& frozen) {
  std::vector<bool> needed(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    needed[i] = trains(graph.nodes[i], frozen);
    for (const NodeId from : graph.nodes[i].inputs) needed[i] = needed[i] || needed.at(static_cast<std::size_t>(from));
  }
  return needed;
}

double macs_of(const Node& node, const Shape& output) {
  return std::visit(
      [&](const auto& operation) -> double {
        if constexpr (requires { operation.macs(output); }) return operation.macs(output);
        return 0;
      },
      node.attributes);
}

Cost cost_of(const Graph& graph, Index height, Index width, const std::set<std::string>& frozen) {
  const std::vector<Shape> shapes = infer_shapes(graph, height, width);
  const std::vector<bool> needed = needs_gradient(graph, frozen);
  const std::vector<bool> of_logits = nodes_of_logits(graph);
  Cost cost;
  double heads = 0, gradients = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const double macs = macs_of(node, shapes[i]);
    (of_logits[i] ? cost.macs : heads) += macs;
    if (!node.inputs.empty() && needed[static_cast<std::size_t>(node.inputs[0])]) gradients += macs;
    if (!node.parameters.empty() && trains(node.parameters.front(), frozen)) gradients += macs;
    for (const ParameterSpec& parameter : node.parameters) cost.parameters += parameter.count();
  }
  cost.training_flops = 2 * (cost.macs + heads + gradients);
  return cost;
}

}  // namespace convoy
