// SPDX-License-Identifier: Apache-2.0
#include "network/validate.hpp"

#include <cstddef>
#include <set>

#include "core/errors.hpp"

namespace convoy {
namespace {

struct Expected {
  Kind kind;
  std::vector<Index> shape;
};

/// What an operation reads and owns.
struct Contract {
  std::size_t inputs = 1;
  std::vector<Expected> parameters;
  bool possible = true;  ///< attributes make sense
};

struct ContractOf {
  Contract operator()(const Input& input) const { return {.inputs = 0, .possible = input.channels > 0}; }
  Contract operator()(const Convolution& c) const {
    const bool possible = c.in > 0 && c.out > 0 && c.kernel > 0 && c.stride > 0 && c.pad >= 0 && c.groups > 0 &&
                          c.in % c.groups == 0 && c.out % c.groups == 0;
    if (!possible) return {.possible = false};
    Contract contract{.parameters = {{Kind::filter, {c.out, c.in / c.groups, c.kernel, c.kernel}}}};
    if (c.bias) contract.parameters.push_back({Kind::bias, {c.out}});
    return contract;
  }
  Contract operator()(const BatchNorm& norm) const {
    return {.parameters = {{Kind::norm_scale, {norm.channels}}, {Kind::norm_shift, {norm.channels}}},
            .possible = norm.channels > 0 && norm.momentum >= 0 && norm.momentum <= 1 && norm.epsilon > 0};
  }
  // With a negative slope the output's sign would no longer be the input's, by which backends choose the slope.
  Contract operator()(const Activation& activation) const { return {.possible = activation.slope >= 0}; }
  Contract operator()(const Pool& pool) const {
    // More padding than half a window would make windows of padding only.
    return {.possible = pool.kernel > 0 && pool.stride > 0 && pool.pad >= 0 && 2 * pool.pad <= pool.kernel};
  }
  Contract operator()(const GlobalAveragePool&) const { return {}; }
  Contract operator()(const Linear& linear) const {
    Contract contract{.parameters = {{Kind::filter, {linear.out, linear.in}}},
                      .possible = linear.in > 0 && linear.out > 0};
    if (linear.bias) contract.parameters.push_back({Kind::bias, {linear.out}});
    return contract;
  }
  // The power is taken of a number of at least k.
  Contract operator()(const LocalResponseNorm& norm) const {
    return {.possible = norm.size > 0 && norm.alpha >= 0 && norm.beta > 0 && norm.k > 0};
  }
  Contract operator()(const Dropout& dropout) const { return {.possible = dropout.rate >= 0 && dropout.rate < 1}; }
  Contract operator()(const Add&) const { return {.inputs = 2}; }
  Contract operator()(const Flatten&) const { return {}; }
  Contract operator()(const Loss& loss) const {
    return {.possible = loss.label_smoothing >= 0 && loss.label_smoothing < 1};
  }
};

void check_parameters(const Node& node, const std::vector<Expected>& expected) {
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

void check_inputs(const Graph& graph, std::size_t at, std::size_t expected) {
  const Node& node = graph.nodes[at];
  if (node.inputs.size() != expected)
    fail(Exit::usage, "node '{}' reads {} nodes ({} reads {})", node.name, node.inputs.size(),
         describe(node.attributes), expected);
  for (const NodeId from : node.inputs) {
    if (from < 0 || static_cast<std::size_t>(from) >= graph.nodes.size())
      fail(Exit::usage, "node '{}' reads node {}, which doesn't exist", node.name, from);
    if (static_cast<std::size_t>(from) >= at)
      fail(Exit::usage, "node '{}' reads '{}', which stands after it (nodes must be in topological order)", node.name,
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
    if ((as<Loss>(node) != nullptr) != (i + 1 == graph.nodes.size()))
      fail(Exit::usage, "node '{}': the last node, and no other, must be the loss", node.name);
    if (!node_names.insert(node.name).second) fail(Exit::usage, "two nodes are named '{}'", node.name);

    const Contract contract = std::visit(ContractOf{}, node.attributes);
    if (!contract.possible) fail(Exit::usage, "node '{}' can't be a {}", node.name, describe(node.attributes));
    check_inputs(graph, i, contract.inputs);
    check_parameters(node, contract.parameters);
    for (const ParameterSpec& parameter : node.parameters)
      if (!parameter_names.insert(parameter.name).second)
        fail(Exit::usage, "two parameters are named '{}' (the second in node '{}')", parameter.name, node.name);
    for (const NodeId from : node.inputs) read[static_cast<std::size_t>(from)] = true;
  }
  for (std::size_t i = 0; i + 1 < graph.nodes.size(); ++i)
    if (!read[i]) fail(Exit::usage, "nothing reads node '{}'", graph.nodes[i].name);
}

}  // namespace convoy
