// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "network/graph.hpp"

namespace convoy {

struct GraphSpec {
  std::string model = "resnet50";  ///< `mlp`, `lenet`, `resnet20` (6n+2 CIFAR form), `resnet50`, ...; see model_names()
  Index classes = 1000;
  Index channels = 3;
  Index image_size = 224;          ///< used by linear layers only (mlp, lenet)
  std::string version;             ///< resnet: `v1`, `v1.5` (stride in the 3x3), `v2` (pre-activation); empty = the model's default
  std::string stem;                ///< `imagenet`, `small`; empty = by model
  std::string activation;          ///< `relu`, `leaky_relu`, `tanh`; empty = the model's default
  float leaky_slope = 0.1F;
  float norm_momentum = 0.1F, norm_epsilon = 1e-5F;
  std::string initialiser;         ///< of filters: `he`, `xavier`, `normal`, `truncated_normal`, `uniform`; empty = the model's default
  float initialiser_std = 0.01F;   ///< of normal, truncated_normal; bound of uniform
  bool zero_init_residual = false;
  float label_smoothing = 0;
  std::vector<Index> hidden = {128};  ///< mlp: widths of the hidden layers
};

/// Throws Error(usage) for an unknown model (naming the nearest) or a variant the model doesn't have.
Graph build_graph(const GraphSpec& spec);
/// Names for --help and error texts.
std::vector<std::string> model_names();

}  // namespace convoy
