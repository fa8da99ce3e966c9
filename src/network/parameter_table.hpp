// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network/plan.hpp"

namespace convoy {

/// Rows in reverse of the graph's order, of one node as its parameters stand there; then tail, flags and, with
/// spec.sync_bn, the exchange area. The graph must be valid.
ParameterTable make_parameter_table(const Graph& graph, const PlanSpec& spec);

}  // namespace convoy
