// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "network/graph.hpp"

namespace convoy {

std::vector<bool> needs_gradient(const Graph& graph) {
  std::vector<bool> needed(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    needed[i] = !graph.nodes[i].parameters.empty();
    for (const NodeId from : graph.nodes[i].inputs) needed[i] = needed[i] || needed.at(static_cast<std::size_t>(from));
  }
  return needed;
}

double macs_of(const Node& node, const Shape& output) {
  if (const auto* convolution = as<Convolution>(node)) {
    const Index taps = convolution->in / convolution->groups * convolution->kernel * convolution->kernel;
    return static_cast<double>(output.count()) * static_cast<double>(taps);
  }
  if (const auto* linear = as<Linear>(node)) return static_cast<double>(linear->in) * static_cast<double>(linear->out);
  return 0;
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
