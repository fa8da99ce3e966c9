// SPDX-License-Identifier: Apache-2.0
// Which parameters of a network keep their values while the others train.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "network/graph.hpp"

namespace convoy {

/// Names of the parameters that a pattern matches (find_parameters), and of those that the network itself fixes. Throws
/// Error(usage) for a pattern that matches nothing, and if nothing is left to train.
std::set<std::string> find_frozen(const Graph& graph, const std::vector<std::string>& patterns);

}  // namespace convoy
