// SPDX-License-Identifier: Apache-2.0
// Parameters by patterns of their names, as `*` and `?` of shells do: a parameter's own name or that of a module that
// holds it (`layer1`, `*.bn?`, `conv1.weight`).
#pragma once
#include <string>

#include "network/graph.hpp"

namespace convoy {

bool matches(const std::string& pattern, const std::string& parameter);

/// Throws Error(usage): the option's pattern matches nothing of the graph.
[[noreturn]] void refuse_pattern(const Graph& graph, const char* option, const std::string& pattern);

}  // namespace convoy
