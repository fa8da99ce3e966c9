// SPDX-License-Identifier: Apache-2.0
#include "network/freeze.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/errors.hpp"
#include "network/patterns.hpp"

namespace convoy {

std::set<std::string> find_frozen(const Graph& graph, const std::vector<std::string>& patterns) {
  std::set<std::string> frozen;
  const Node* const last = last_layer(graph);
  bool any_left = last == nullptr;
  for (const Node& node : graph.nodes)
    for (const ParameterSpec& parameter : node.parameters)
      if (parameter.fixed) frozen.insert(parameter.name);
  for (const std::string& pattern : patterns) frozen.merge(find_parameters(graph, "--freeze", pattern));
  for (const Node& node : graph.nodes)
    for (const ParameterSpec& parameter : node.parameters) any_left = any_left || frozen.count(parameter.name) == 0;
  if (!any_left)
    fail(Exit::usage, "--freeze '{}' leaves nothing of {} to train; leave its last layer ({}) out",
         fmt::join(patterns, ","), graph.model, last->name);
  return frozen;
}

}  // namespace convoy
