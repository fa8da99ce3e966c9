// SPDX-License-Identifier: Apache-2.0
// A trained network as an ONNX file. network/operations says what each operation is in ONNX.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "network/graph.hpp"

namespace convoy {

struct OnnxSpec {
  const Graph& graph;
  Index height = 0, width = 0;  ///< of the input; the number of images stays open
  /// Values of a parameter or of running statistics: `conv1.weight`, `bn1.running_mean`.
  std::function<std::span<const float>(const std::string& name)> values;
  std::map<std::string, std::string> metadata = {};
  /// Per channel, in pixel units. If they are given, the input is pixels from 0 to 255, and the graph begins with
  /// (pixel - mean) / deviation.
  std::vector<double> mean = {}, deviation = {};
};

/// The file's bytes. Input `images`, n c h w; output `logits`, n classes. Initialisers have the names of the
/// parameters. Throws Error(usage) for an operation that ONNX doesn't have, and for more than 2 GiB of weights, the
/// limit of the format.
std::string onnx_model(const OnnxSpec& spec);

}  // namespace convoy
