// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "network/graph.hpp"

namespace convoy {

/// What a user may choose. Empty text: the model's default.
struct GraphSpec {
  std::string model = "resnet50";  ///< `mlp`, `lenet`, `resnet20` (6n+2 CIFAR form), `resnet50`, ...; see model_help()
  Index classes = 1000;
  Index channels = 3;
  Index image_size = 224;  ///< used by linear layers only (mlp, lenet)
  std::string version;     ///< resnet: `v1`, `v1.5` (stride in the 3x3), `v2` (pre-activation)
  std::string stem;        ///< resnet for ImageNet: `imagenet`, `small` (3x3, no pooling)
  std::string activation;  ///< `relu`, `leaky_relu`, `tanh`
  std::string pooling;     ///< lenet: `max`, `average`
  std::string variant;     ///< alexnet: `2012`, `ray`, `owt`
  float dropout = -1;      ///< share of values dropped in training; below 0: the model's
  float leaky_slope = 0.1F;
  float norm_momentum = 0.1F, norm_epsilon = 1e-5F;
  std::string initialiser;        ///< of filters: `he`, `xavier`, `normal`, `truncated_normal`, `uniform`
  float initialiser_std = 0.01F;  ///< of normal, truncated_normal; bound of uniform
  bool zero_init_residual = false;
  float label_smoothing = 0;
  std::vector<Index> hidden = {128};  ///< mlp: widths of the hidden layers
};

/// Throws Error(usage) for an unknown model (naming the nearest) or a variant the model doesn't have.
Graph build_graph(const GraphSpec& spec);
/// Names that error texts may suggest: the common ones, not every depth of a family.
std::vector<std::string> model_names();
/// For --help: the families, which depths they have and how an ambiguous depth is told apart. Lines without line end.
std::string model_help();

}  // namespace convoy
