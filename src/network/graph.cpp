// SPDX-License-Identifier: Apache-2.0
#include "network/graph.hpp"

#include <cstddef>

#include "core/errors.hpp"

namespace convoy {

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

std::vector<bool> needs_gradient(const Graph& graph) {
  std::vector<bool> needed(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    needed[i] = !graph.nodes[i].parameters.empty();
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

Cost cost_of(const Graph& graph, Index height, Index width) {
  const std::vector<Shape> shapes = infer_shapes(graph, height, width);
  const std::vector<bool> needed = needs_gradient(graph);
  Cost cost;
  double without_data_gradient = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const double macs = macs_of(node, shapes[i]);
    cost.macs += macs;
    if (!node.inputs.empty() && !needed[static_cast<std::size_t>(node.inputs[0])]) without_data_gradient += macs;
    for (const ParameterSpec& parameter : node.parameters) cost.parameters += parameter.count();
  }
  cost.training_flops = 2 * (3 * cost.macs - without_data_gradient);
  return cost;
}

}  // namespace convoy
