// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "network/builder.hpp"
#include "network/models/family.hpp"

namespace convoy {

enum class BlockKind : std::uint8_t { basic, bottleneck };

/// post: convolution, norm, activation, and an activation after the sum (He et al. 2015). pre: norm, activation,
/// convolution, and a sum that nothing follows (He et al. 2016, figure 4e).
enum class Order : std::uint8_t { post_activation, pre_activation };

/// The stages of a residual network: layer1.0, layer1.1, ..., layer2.0, ...
struct Residual {
  BlockKind kind = BlockKind::basic;
  Order order = Order::post_activation;
  int strided = 1;            ///< which convolution of a bottleneck halves the image: 1 or 2
  std::vector<int> blocks;    ///< per stage
  std::vector<Index> widths;  ///< per stage; a bottleneck's output is four times as wide
  int groups = 1;             ///< of a bottleneck's 3x3 convolution
  bool excited = false;       ///< squeeze and excitation at the end of each branch (Hu et al. 2018), to a sixteenth
  Index group_width = 64;     ///< a bottleneck's inner width is groups * group_width / 64 of the stage's
};

/// Stages from the second on halve the image. Shortcuts are projections (1x1 convolution; with a norm in
/// post-activation order) where the shape changes, else the identity. Ends with the last norm and activation in
/// pre-activation order.
NodeId append_stages(GraphBuilder& net, NodeId x, const Residual& residual, const GraphSpec& spec);

/// resnet-version, stem and zero-init-residual.
std::vector<ModelOption> residual_options();

/// `resnet50_cifar` -> 50, `_cifar`.
struct ResnetName {
  int depth = 0;
  std::string_view suffix;  ///< after the depth
};
std::optional<ResnetName> parse_resnet(std::string_view model);
bool is_imagenet_depth(int depth);

}  // namespace convoy
