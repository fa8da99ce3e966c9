// SPDX-License-Identifier: Apache-2.0
#include "network/patterns.hpp"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <vector>

#include "core/errors.hpp"

namespace convoy {
namespace {

/// First parts of all names, each once, in order: what a user may have meant.
std::vector<std::string> outermost_modules(const Graph& graph) {
  std::vector<std::string> modules;
  for (const Node& node : graph.nodes)
    for (const ParameterSpec& parameter : node.parameters) {
      const std::string module = parameter.name.substr(0, parameter.name.find('.'));
      if (std::find(modules.begin(), modules.end(), module) == modules.end()) modules.push_back(module);
    }
  return modules;
}

/// `layer1.0.conv1.weight`: itself, `layer1.0.conv1`, `layer1.0`, `layer1`.
bool matches(const std::string& pattern, const std::string& parameter) {
  std::string name = parameter;
  while (fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) != 0) {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string::npos) return false;
    name.resize(dot);
  }
  return true;
}

}  // namespace

std::set<std::string> find_parameters(const Graph& graph, const char* option, const std::string& pattern) {
  std::set<std::string> found;
  for (const Node& node : graph.nodes)
    for (const ParameterSpec& parameter : node.parameters)
      if (matches(pattern, parameter.name)) found.insert(parameter.name);
  if (found.empty() && pattern == backbone) {
    const Node* const last = last_layer(graph);
    const std::vector<bool> of_logits = nodes_of_logits(graph);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      for (const ParameterSpec& parameter : graph.nodes[i].parameters)
        if (of_logits[i] && &graph.nodes[i] != last) found.insert(parameter.name);
  }
  if (!found.empty()) return found;
  fail(Exit::usage,
       "{} '{}' matches no parameter of {}; its modules are {}, and 'convoy inspect checkpoint' lists all names",
       option, pattern, graph.model, fmt::join(outermost_modules(graph), ", "));
}

}  // namespace convoy
