// SPDX-License-Identifier: Apache-2.0
// The network in an ONNX file: which operations its operators are, network/operations says (onnx_forms(), from_onnx()).
#pragma once
#include <string>
#include <vector>

#include "interchange/onnx_file.hpp"
#include "network/models.hpp"

namespace convoy {

struct OnnxNetwork {
  GraphSpec spec;               ///< layers, classes, channels, image_size; its model is what the file calls the network
  Index height = 0, width = 0;  ///< of the input; 0: any
  /// Under the names that the network's parameters and statistics have; `beside` and places as in the file.
  std::vector<StoredValues> tensors;
  /// What `convoy export` wrote about the network; empty for files of other programs.
  std::map<std::string, std::string> metadata;
};

/// Throws Error(data) that names the file, the node that Convoy doesn't have and a remedy.
OnnxNetwork read_onnx_network(const File& file);

}  // namespace convoy
