// SPDX-License-Identifier: Apache-2.0
// What Inception v4 and Inception-ResNet v2 have in common (Szegedy et al. 2016, arXiv 1602.07261), by timm's names.
#pragma once
#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "network/builder.hpp"

namespace convoy {

inline constexpr Pool inception_halving{.kernel = 3, .stride = 2},
    inception_smooth{.mode = Pool::Mode::average, .kernel = 3, .stride = 1, .pad = 1, .count_padding = false};

/// Kernel, and padding that keeps the size unless the stride is 2 or `valid`.
struct InceptionUnit {
  Index out = 0;
  int height = 1, width = 1, stride = 1;
  bool valid = false;
};

/// A module whose parts have names that begin with `name`.
class InceptionStage {
 public:
  InceptionStage(GraphBuilder& net, std::string name) : net_(net), name_(std::move(name)) {}

  NodeId unit(const std::string& part, NodeId x, const InceptionUnit& unit) {
    const bool keeps = unit.stride == 1 && !unit.valid;
    const std::string name = part.empty() ? name_ : name_ + "." + part;
    x = net_.convolution(name + ".conv", x,
                         {.out = unit.out,
                          .kernel = unit.height,
                          .stride = unit.stride,
                          .pad = keeps ? unit.height / 2 : 0,
                          .kernel_w = unit.height == unit.width ? 0 : unit.width,
                          .pad_w = unit.height == unit.width ? 0 : unit.width / 2});
    return net_.activation(name + ".act", net_.batch_norm(name + ".bn", x));
  }
  /// `branch1.0`, `branch1.1` ...
  NodeId chain(const char* branch, NodeId x, const std::vector<InceptionUnit>& units, int first = 0) {
    for (const InceptionUnit& each : units) x = unit(fmt::format("{}.{}", branch, first++), x, each);
    return x;
  }
  NodeId pool(const char* part, NodeId x, const Pool& attributes) {
    return net_.apply(name_ + "." + part, x, attributes);
  }
  NodeId join(std::vector<NodeId> branches, const char* part = ".concat") {
    return net_.apply(name_ + part, std::move(branches), Concatenation{});
  }
  /// An average, and a 1x1.
  NodeId pooled(NodeId x, Index out) { return unit("branch3.1", pool("branch3.0", x, inception_smooth), {.out = out}); }
  /// `branches` become channels of `x` by a 1x1 with a bias; `scale` times that is added to x.
  NodeId residual(NodeId x, std::vector<NodeId> branches, float scale) {
    NodeId y = join(std::move(branches));
    y = net_.convolution(name_ + ".conv2d", y, {.out = net_.channels(x), .kernel = 1, .pad = 0, .bias = true});
    if (scale != 1) y = net_.apply(name_ + ".scale", y, Activation{.kind = ActivationKind::scale, .slope = scale});
    return net_.apply(name_ + ".add", {y, x}, Add{});
  }
  NodeId activation(NodeId x) { return net_.activation(name_ + ".act", x); }

 private:
  GraphBuilder& net_;
  std::string name_;
};

}  // namespace convoy
