// SPDX-License-Identifier: Apache-2.0
#include "network/models/residual.hpp"

#include <cstddef>
#include <utility>

namespace convoy {
namespace {

/// The convolutions of a block's branch, first to last.
std::vector<Convolution> branch_of(const Residual& residual, Index width, int stride) {
  if (residual.kind == BlockKind::basic)
    return {{.out = width, .kernel = 3, .stride = stride}, {.out = width, .kernel = 3}};
  const int first = residual.strided == 1 ? stride : 1;
  return {{.out = width, .kernel = 1, .stride = first, .pad = 0},
          {.out = width, .kernel = 3, .stride = stride / first},
          {.out = 4 * width, .kernel = 1, .pad = 0}};
}

NodeId project(GraphBuilder& net, const std::string& block, NodeId x, Index out, int stride) {
  return net.convolution(block + ".downsample.0", x, {.out = out, .kernel = 1, .stride = stride, .pad = 0});
}

NodeId append_post_activation(GraphBuilder& net, const std::string& block, NodeId x,
                              const std::vector<Convolution>& branch, int stride, bool start_at_zero) {
  NodeId y = x;
  for (std::size_t i = 0; i < branch.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    y = net.convolution(block + ".conv" + number, y, branch[i]);
    y = net.batch_norm(block + ".bn" + number, y);
    if (i + 1 < branch.size()) y = net.activation(block + ".act" + number, y);
  }
  if (start_at_zero) net.start_at_zero(y);
  NodeId shortcut = x;
  if (stride != 1 || net.channels(x) != net.channels(y)) {
    shortcut = project(net, block, x, net.channels(y), stride);
    shortcut = net.batch_norm(block + ".downsample.1", shortcut);
  }
  const NodeId sum = net.add(block + ".add", y, shortcut);
  return net.activation(block + ".act" + std::to_string(branch.size()), sum);
}

NodeId append_pre_activation(GraphBuilder& net, const std::string& block, NodeId x,
                             const std::vector<Convolution>& branch, int stride, bool start_at_zero) {
  NodeId y = x, activated = x;
  for (std::size_t i = 0; i < branch.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    y = net.batch_norm(block + ".bn" + number, y);
    y = net.activation(block + ".act" + number, y);
    if (i == 0) activated = y;
    y = net.convolution(block + ".conv" + number, y, branch[i]);
  }
  // Here the convolution ends the branch. A zero scale of the norm before it would die: ReLU passes no gradient at
  // zero.
  if (start_at_zero) net.start_at_zero(y);
  const bool same_shape = stride == 1 && net.channels(x) == net.channels(y);
  const NodeId shortcut = same_shape ? x : project(net, block, activated, net.channels(y), stride);
  return net.add(block + ".add", y, shortcut);
}

}  // namespace

NodeId append_stages(GraphBuilder& net, NodeId x, const Residual& residual, bool zero_init_residual) {
  const bool pre_activation = residual.order == Order::pre_activation;
  const auto append_block = pre_activation ? append_pre_activation : append_post_activation;
  for (std::size_t stage = 0; stage < residual.blocks.size(); ++stage)
    for (int i = 0; i < residual.blocks[stage]; ++i) {
      const int stride = stage > 0 && i == 0 ? 2 : 1;
      const std::string block = "layer" + std::to_string(stage + 1) + '.' + std::to_string(i);
      x = append_block(net, block, x, branch_of(residual, residual.widths[stage], stride), stride, zero_init_residual);
    }
  if (!pre_activation) return x;
  return net.activation("act", net.batch_norm("bn", x));
}

}  // namespace convoy
