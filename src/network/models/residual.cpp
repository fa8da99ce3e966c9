// SPDX-License-Identifier: Apache-2.0
#include "network/models/residual.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

namespace convoy {
namespace {

/// The convolutions of a block's branch, first to last.
std::vector<Convolution> branch_of(const Residual& residual, Index width, int stride) {
  if (residual.kind == BlockKind::basic)
    return {{.out = width, .kernel = 3, .stride = stride}, {.out = width, .kernel = 3}};
  const int first = residual.strided == 1 ? stride : 1;
  const Index inner = width * residual.groups * residual.group_width / 64;
  return {{.out = inner, .kernel = 1, .stride = first, .pad = 0},
          {.out = inner, .kernel = 3, .stride = stride / first, .groups = residual.groups},
          {.out = 4 * width, .kernel = 1, .pad = 0}};
}

/// `layer1.0` + `conv`, 0 -> `layer1.0.conv1`.
std::string name_in(const std::string& block, const char* what, std::size_t index) {
  return fmt::format("{}.{}{}", block, what, index + 1);
}

NodeId project(GraphBuilder& net, const std::string& block, NodeId x, Index out, int stride) {
  return net.convolution(block + ".downsample.0", x, {.out = out, .kernel = 1, .stride = stride, .pad = 0});
}

NodeId append_post_activation(GraphBuilder& net, const std::string& block, NodeId x,
                              const std::vector<Convolution>& branch, int stride, bool start_at_zero, bool excited) {
  NodeId y = x;
  for (std::size_t i = 0; i < branch.size(); ++i) {
    y = net.convolution(name_in(block, "conv", i), y, branch[i]);
    y = net.batch_norm(name_in(block, "bn", i), y);
    if (i + 1 < branch.size()) y = net.activation(name_in(block, "act", i), y);
  }
  if (start_at_zero) net.start_at_zero(y);
  if (excited) y = net.excite(block + ".se", y, {.squeezed = net.channels(y) / 16});
  NodeId shortcut = x;
  if (stride != 1 || net.channels(x) != net.channels(y)) {
    shortcut = project(net, block, x, net.channels(y), stride);
    shortcut = net.batch_norm(block + ".downsample.1", shortcut);
  }
  const NodeId sum = net.apply(block + ".add", {y, shortcut}, Add{});
  return net.activation(name_in(block, "act", branch.size() - 1), sum);
}

NodeId append_pre_activation(GraphBuilder& net, const std::string& block, NodeId x,
                             const std::vector<Convolution>& branch, int stride, bool start_at_zero, bool excited) {
  NodeId y = x, activated = x;
  for (std::size_t i = 0; i < branch.size(); ++i) {
    y = net.batch_norm(name_in(block, "bn", i), y);
    y = net.activation(name_in(block, "act", i), y);
    if (i == 0) activated = y;
    y = net.convolution(name_in(block, "conv", i), y, branch[i]);
  }
  // Here the convolution ends the branch. A norm before it with scale zero would never learn: ReLU passes no gradient.
  if (start_at_zero) net.start_at_zero(y);
  if (excited) y = net.excite(block + ".se", y, {.squeezed = net.channels(y) / 16});
  const bool same_shape = stride == 1 && net.channels(x) == net.channels(y);
  const NodeId shortcut = same_shape ? x : project(net, block, activated, net.channels(y), stride);
  return net.apply(block + ".add", {y, shortcut}, Add{});
}

}  // namespace

NodeId append_stages(GraphBuilder& net, NodeId x, const Residual& residual, const GraphSpec& spec) {
  const bool zero_init_residual = spec.option("zero-init-residual") == "true";
  const bool pre_activation = residual.order == Order::pre_activation;
  const auto append_block = pre_activation ? append_pre_activation : append_post_activation;
  for (std::size_t stage = 0; stage < residual.blocks.size(); ++stage)
    for (int i = 0; i < residual.blocks[stage]; ++i) {
      const int stride = stage > 0 && i == 0 ? 2 : 1;
      const std::string block = fmt::format("layer{}.{}", stage + 1, i);
      x = append_block(net, block, x, branch_of(residual, residual.widths[stage], stride), stride, zero_init_residual,
                       residual.excited);
    }
  if (!pre_activation) return x;
  return net.activation("act", net.batch_norm("bn", x));
}

std::vector<ModelOption> residual_options() {
  return {
      {.name = "resnet-version",
       .words = {"v1", "v1.5", "v2"},
       .help = "ResNet with the stride in the 1x1 (v1) or the 3x3 (v1.5), or pre-activation (v2); default: the model's",
       .lacks = "version"},
      {.name = "stem",
       .words = {"imagenet", "small"},
       .help = "first layers for large or small images; default: the model's",
       .lacks = "stem"},
      {.name = "zero-init-residual",
       .form = ModelOption::Form::flag,
       .help = "the last batch norm of each residual branch starts with scale 0",
       .lacks = "residual blocks to start at zero",
       .aliases = {"init-bn0", "last-gamma", "last-bn-0-init", "zero-init-last"}}};
}

std::optional<ResnetName> parse_resnet(std::string_view model) {
  constexpr std::string_view prefix = "resnet";
  if (!model.starts_with(prefix)) return std::nullopt;
  model.remove_prefix(prefix.size());
  ResnetName name;
  const auto [end, error] = std::from_chars(model.data(), model.data() + model.size(), name.depth);
  if (error != std::errc{} || name.depth > 9999) return std::nullopt;
  name.suffix = model.substr(static_cast<std::size_t>(end - model.data()));
  return name;
}

bool is_imagenet_depth(int depth) {
  constexpr std::array depths = {18, 34, 50, 101, 152, 200, 269};
  return std::find(depths.begin(), depths.end(), depth) != depths.end();
}

}  // namespace convoy
