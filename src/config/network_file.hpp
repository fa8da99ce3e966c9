// SPDX-License-Identifier: Apache-2.0
// Files that describe networks (--model-file): an INI text of layers, blocks and repeats, docs/networks.md. They become
// the layers of a GraphSpec; one line of text holds those in a configuration.
#pragma once
#include <string>
#include <vector>

#include "network/models.hpp"

namespace convoy {

struct NetworkFile {
  std::string name;  ///< what the file calls the network
  std::vector<LayerSpec> layers;
};

/// Blocks are written out. Throws Error(usage) that names `path` and line. What the layers make of an image,
/// build_graph() finds out.
NetworkFile read_network_file(const std::string& text, const std::string& path);
/// A file that reads back as the same network.
std::string print_network_file(const NetworkFile& network);

/// As one line, which also holds the layers' origins if they are wanted.
enum class Origins : std::uint8_t { dropped, kept };
std::string to_line(const std::vector<LayerSpec>& layers, Origins origins);
/// Throws BadValue.
std::vector<LayerSpec> layers_of_line(const std::string& line);

}  // namespace convoy
