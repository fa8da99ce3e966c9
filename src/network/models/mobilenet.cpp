// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "network/builder.hpp"
#include "network/models/family.hpp"

namespace convoy {
namespace {

/// Convolution, batch norm and activation; the names of the first two.
struct Unit {
  std::string convolution, norm, activation;
};
NodeId append_unit(GraphBuilder& net, NodeId x, const Unit& unit, const Convolution& attributes) {
  x = net.batch_norm(unit.norm, net.convolution(unit.convolution, x, attributes));
  return net.activation(unit.activation, x);
}
/// A module of three parts, as torchvision numbers them.
Unit sequence(const std::string& name) { return {name + ".0", name + ".1", name + ".2"}; }

Convolution depthwise(Index channels, int stride) {
  return {.out = channels, .kernel = 3, .stride = stride, .groups = static_cast<int>(channels)};
}
Convolution pointwise(Index out) { return {.out = out, .kernel = 1, .pad = 0}; }

/// Howard et al. 2017 (arXiv 1704.04861), table 1.
Graph build_v1(const GraphSpec& spec) {
  struct Layer {
    Index out;
    int stride;
  };
  constexpr Layer layers[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                              {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
  GraphBuilder net(spec, ActivationKind::relu);
  NodeId x = append_unit(net, net.input(), {"conv1", "bn1", "act1"}, {.out = 32, .kernel = 3, .stride = 2});
  int number = 1;
  for (const Layer& layer : layers) {
    const std::string name = fmt::format("block{}", number++);
    x = append_unit(net, x, sequence(name + ".depthwise"), depthwise(net.channels(x), layer.stride));
    x = append_unit(net, x, sequence(name + ".pointwise"), pointwise(layer.out));
  }
  x = net.apply("flatten", net.apply("avgpool", x, GlobalAveragePool{}), Flatten{});
  return net.classify("fc", net.apply("dropout", x, Dropout{dropout_of(spec, 0.001F)}), spec.model);
}

/// Sandler et al. 2018 (arXiv 1801.04381), table 2; names are torchvision's.
Graph build_v2(const GraphSpec& spec) {
  struct Stage {
    Index expansion, out;
    int blocks, stride;
  };
  constexpr Stage stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                              {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  GraphBuilder net(spec, ActivationKind::relu6);
  NodeId x = append_unit(net, net.input(), sequence("features.0"), {.out = 32, .kernel = 3, .stride = 2});
  int number = 1;
  for (const Stage& stage : stages)
    for (int i = 0; i < stage.blocks; ++i) {
      const std::string name = fmt::format("features.{}.conv", number++);
      const int stride = i == 0 ? stage.stride : 1;
      int next = 0;
      const auto module = [&] { return fmt::format("{}.{}", name, next++); };
      NodeId y = x;
      const Index hidden = stage.expansion * net.channels(x);
      if (stage.expansion != 1) y = append_unit(net, y, sequence(module()), pointwise(hidden));
      y = append_unit(net, y, sequence(module()), depthwise(hidden, stride));
      y = net.convolution(module(), y, pointwise(stage.out));
      y = net.batch_norm(module(), y);  // a linear bottleneck: no activation follows
      const bool same_shape = stride == 1 && net.channels(x) == stage.out;
      x = same_shape ? net.apply(name + ".add", {y, x}, Add{}) : y;
    }
  x = append_unit(net, x, sequence(fmt::format("features.{}", number)), pointwise(1280));
  x = net.apply("flatten", net.apply("avgpool", x, GlobalAveragePool{}), Flatten{});
  return net.classify("classifier.1", net.apply("classifier.0", x, Dropout{dropout_of(spec, 0.2F)}), spec.model);
}

bool is_v2(const std::string& model) { return model == "mobilenet_v2"; }

}  // namespace

Family mobilenet_family() {
  return {.names = {"mobilenet_v1", "mobilenet_v2"},
          .help = {"mobilenet_v1, mobilenet_v2: depthwise convolutions"},
          .options = {dropout_option()},
          .has = [](const std::string& model) { return model == "mobilenet_v1" || is_v2(model); },
          .usual_input = [](const GraphSpec&) { return imagenet_input; },
          .build = [](const GraphSpec& spec) { return is_v2(spec.model) ? build_v2(spec) : build_v1(spec); }};
}

}  // namespace convoy
