// SPDX-License-Identifier: Apache-2.0
#include "network/freeze.hpp"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>

#include "core/errors.hpp"

namespace convoy {
namespace {

bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

/// `layer1.0.conv1.weight`: itself, `layer1.0.conv1`, `layer1.0`, `layer1`.
bool matches_part(const std::string& pattern, std::string name) {
  while (!matches(pattern, name)) {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string::npos) return false;
    name.resize(dot);
  }
  return true;
}

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

}  // namespace

std::set<std::string> find_frozen(const Graph& graph, const std::vector<std::string>& patterns) {
  std::set<std::string> frozen;
  const Node* const last = last_layer(graph);
  bool any_left = last == nullptr;
  for (const std::string& pattern : patterns) {
    bool found = false;
    for (const Node& node : graph.nodes)
      for (const ParameterSpec& parameter : node.parameters) {
        if (pattern == backbone ? &node == last : !matches_part(pattern, parameter.name)) continue;
        frozen.insert(parameter.name);
        found = true;
      }
    if (!found)
      fail(
          Exit::usage,
          "--freeze '{}' matches no parameter of {}; its modules are {}, and 'convoy inspect checkpoint' lists all names",
          pattern, graph.model, fmt::join(outermost_modules(graph), ", "));
  }
  for (const Node& node : graph.nodes)
    for (const ParameterSpec& parameter : node.parameters) any_left = any_left || frozen.count(parameter.name) == 0;
  if (!any_left)
    fail(Exit::usage, "--freeze '{}' leaves nothing of {} to train; leave its last layer ({}) out",
         fmt::join(patterns, ","), graph.model, last->name);
  return frozen;
}

}  // namespace convoy
