// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network/graph.hpp"

namespace convoy {

/// Throws Error(usage), naming node and parameter, unless: the first node is the only input and the last a loss; every
/// node reads earlier nodes, as many as its operation takes and none of them a loss, and is read unless it is a loss;
/// names are unique; attributes are possible; and parameters have the number, kinds and shapes of their operation.
/// Image sizes are checked by infer_shapes().
void validate(const Graph& graph);

}  // namespace convoy
