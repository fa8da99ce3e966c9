// SPDX-License-Identifier: Apache-2.0
// Parameters by patterns of their names, for --freeze, --lr-mult and --decay-mult.
#pragma once
#include <set>
#include <string>

#include "network/graph.hpp"

namespace convoy {

/// All but the last layer and auxiliary heads, unless the network has a module of that name.
constexpr const char* backbone = "backbone";

/// Names of the parameters that a pattern matches: their own name or that of a module that holds them, as `*` and `?`
/// of shells do (`layer1`, `*.bn?`, `conv1.weight`); or `backbone`. Throws Error(usage) that names the option if there
/// are none.
std::set<std::string> find_parameters(const Graph& graph, const char* option, const std::string& pattern);

}  // namespace convoy
