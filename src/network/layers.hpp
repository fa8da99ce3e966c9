// SPDX-License-Identifier: Apache-2.0
// Networks as lists of layers, which files describe: a graph from layers, and layers from a graph.
#pragma once
#include <vector>

#include "network/models.hpp"

namespace convoy {

/// Throws Error(usage) that begins with the layer's origin, if it has one.
Graph build_layers(const GraphSpec& spec);

/// Name, operation and fields of a layer, which reads nothing yet; the operation is empty for those that no file can
/// name.
LayerSpec layer_of(const std::string& name, const Attributes& attributes);

/// The layers of a graph, from which build_layers() makes the same one: digest, names and initialisers. Input and loss
/// are left out.
std::vector<LayerSpec> layers_of(const Graph& graph);

}  // namespace convoy
