// SPDX-License-Identifier: Apache-2.0
#include "network/validate.hpp"

#include <cstddef>
#include <set>

#include "core/errors.hpp"

namespace convoy {
namespace {

void check_parameters(const Node& node, const std::vector<ParameterSlot>& expected) {
  if (node.parameters.size() != expected.size())
    fail(Exit::usage, "node '{}' has {} parameters ({} takes {})", node.name, node.parameters.size(),
         describe(node.attributes), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const ParameterSpec& parameter = node.parameters[i];
    if (parameter.shape != expected[i].shape || parameter.kind != expected[i].kind)
      fail(Exit::usage, "parameter '{}' of node '{}' has the wrong shape or kind for {}", parameter.name, node.name,
           describe(node.attributes));
  }
}

void check_inputs(const Graph& graph, std::size_t at, const Contract& contract) {
  const Node& node = graph.nodes[at];
  const std::size_t inputs = node.inputs.size();
  if (inputs < contract.inputs || (inputs > contract.inputs && !contract.more_inputs))
    fail(Exit::usage, "node '{}' reads {} nodes ({} reads {}{})", node.name, inputs, describe(node.attributes),
         contract.inputs, contract.more_inputs ? " or more" : "");
  for (const NodeId from : node.inputs) {
    if (from < 0 || static_cast<std::size_t>(from) >= graph.nodes.size())
      fail(Exit::usage, "node '{}' reads node {}, which doesn't exist", node.name, from);
    if (static_cast<std::size_t>(from) >= at)
      fail(Exit::usage, "node '{}' reads '{}', which comes after it (nodes must be in topological order)", node.name,
           graph.nodes[static_cast<std::size_t>(from)].name);
    if (as<Loss>(graph.nodes[static_cast<std::size_t>(from)]))
      fail(Exit::usage, "node '{}' reads '{}', which is a loss", node.name,
           graph.nodes[static_cast<std::size_t>(from)].name);
  }
}

}  // namespace

void validate(const Graph& graph) {
  if (graph.nodes.size() < 2) fail(Exit::usage, "graph '{}' has no layers", graph.model);
  std::set<std::string> node_names, parameter_names;
  std::vector<bool> read(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if ((as<Input>(node) != nullptr) != (i == 0))
      fail(Exit::usage, "node '{}': the first node, and no other, must be the input", node.name);
    if (i + 1 == graph.nodes.size() && as<Loss>(node) == nullptr)
      fail(Exit::usage, "node '{}': the last node must be the loss", node.name);
    if (!node_names.insert(node.name).second) fail(Exit::usage, "two nodes are named '{}'", node.name);

    const Contract contract = contract_of(node.attributes);
    if (!contract.possible) fail(Exit::usage, "node '{}' can't be a {}", node.name, describe(node.attributes));
    check_inputs(graph, i, contract);
    check_parameters(node, contract.parameters);
    for (const ParameterSpec& parameter : node.parameters)
      if (!parameter_names.insert(parameter.name).second)
        fail(Exit::usage, "two parameters are named '{}' (the second in node '{}')", parameter.name, node.name);
    for (const NodeId from : node.inputs) read[static_cast<std::size_t>(from)] = true;
  }
  for (std::size_t i = 0; i + 1 < graph.nodes.size(); ++i)
    if (!read[i] && as<Loss>(graph.nodes[i]) == nullptr)
      fail(Exit::usage, "nothing reads node '{}'", graph.nodes[i].name);
}

}  // namespace convoy
