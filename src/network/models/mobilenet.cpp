// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <span>

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
NodeId append_unit(GraphBuilder& net, NodeId x, const Unit& unit, const Convolution& attributes, ActivationKind kind) {
  x = net.batch_norm(unit.norm, net.convolution(unit.convolution, x, attributes));
  return net.activation(unit.activation, x, kind);
}
/// A module of three parts, as torchvision numbers them.
Unit sequence(const std::string& name) { return {name + ".0", name + ".1", name + ".2"}; }

Convolution depthwise(Index channels, int stride, int kernel = 3) {
  return {.out = channels, .kernel = kernel, .stride = stride, .pad = kernel / 2, .groups = static_cast<int>(channels)};
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

enum class Excited : std::uint8_t { no, yes };
struct Bottleneck {
  int kernel;
  Index hidden, out;
  Excited excited;
  ActivationKind activation;
  int stride;
};
constexpr auto relu = ActivationKind::relu, swish = ActivationKind::hard_swish;
constexpr auto no = Excited::no, yes = Excited::yes;
constexpr Bottleneck large[] = {
    {3, 16, 16, no, relu, 1},     {3, 64, 24, no, relu, 2},     {3, 72, 24, no, relu, 1},
    {5, 72, 40, yes, relu, 2},    {5, 120, 40, yes, relu, 1},   {5, 120, 40, yes, relu, 1},
    {3, 240, 80, no, swish, 2},   {3, 200, 80, no, swish, 1},   {3, 184, 80, no, swish, 1},
    {3, 184, 80, no, swish, 1},   {3, 480, 112, yes, swish, 1}, {3, 672, 112, yes, swish, 1},
    {5, 672, 160, yes, swish, 2}, {5, 960, 160, yes, swish, 1}, {5, 960, 160, yes, swish, 1}};
constexpr Bottleneck small[] = {{3, 16, 16, yes, relu, 2},   {3, 72, 24, no, relu, 2},    {3, 88, 24, no, relu, 1},
                                {5, 96, 40, yes, swish, 2},  {5, 240, 40, yes, swish, 1}, {5, 240, 40, yes, swish, 1},
                                {5, 120, 48, yes, swish, 1}, {5, 144, 48, yes, swish, 1}, {5, 288, 96, yes, swish, 2},
                                {5, 576, 96, yes, swish, 1}, {5, 576, 96, yes, swish, 1}};

/// Howard et al. 2019 (arXiv 1905.02244), tables 1 and 2; names and the width of the excitations are torchvision's.
Graph build_v3(const GraphSpec& spec) {
  const bool is_large = spec.model == "mobilenet_v3_large";
  GraphBuilder net(spec, swish);
  NodeId x = append_unit(net, net.input(), sequence("features.0"), {.out = 16, .kernel = 3, .stride = 2});
  int number = 1;
  for (const Bottleneck& layer : is_large ? std::span<const Bottleneck>(large) : small) {
    const std::string name = fmt::format("features.{}", number++);
    int next = 0;
    const auto module = [&] { return fmt::format("{}.block.{}", name, next++); };
    NodeId y = x;
    if (layer.hidden != net.channels(x))
      y = append_unit(net, y, sequence(module()), pointwise(layer.hidden), layer.activation);
    y = append_unit(net, y, sequence(module()), depthwise(layer.hidden, layer.stride, layer.kernel), layer.activation);
    if (layer.excited == yes)
      y = net.excite(
          module(), y,
          {.squeezed = multiple_of_8(static_cast<double>(layer.hidden) / 4), .gate = GateKind::hard_sigmoid});
    const std::string last = module();
    y = net.batch_norm(last + ".1", net.convolution(last + ".0", y, pointwise(layer.out)));
    const bool same_shape = layer.stride == 1 && net.channels(x) == layer.out;
    x = same_shape ? net.apply(name + ".add", {y, x}, Add{}) : y;
  }
  x = append_unit(net, x, sequence(fmt::format("features.{}", number)), pointwise(6 * net.channels(x)));
  x = net.apply("flatten", net.apply("avgpool", x, GlobalAveragePool{}), Flatten{});
  x = net.activation("classifier.1", net.linear("classifier.0", x, is_large ? 1280 : 1024));
  return net.classify("classifier.3", net.apply("classifier.2", x, Dropout{dropout_of(spec, 0.2F)}), spec.model);
}

Graph build(const GraphSpec& spec) {
  if (spec.model == "mobilenet_v1") return build_v1(spec);
  return spec.model == "mobilenet_v2" ? build_v2(spec) : build_v3(spec);
}

const std::vector<std::string> names{"mobilenet_v1", "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large"};

}  // namespace

Family mobilenet_family() {
  return {.names = names,
          .help = {"mobilenet_v1, mobilenet_v2, mobilenet_v3_small, mobilenet_v3_large: depthwise convolutions"},
          .options = {dropout_option()},
          .published = {{"mobilenet_v2", 71.88}, {"mobilenet_v3_small", 67.67}, {"mobilenet_v3_large", 74.04}},
          .has = [](const std::string& model) { return std::find(names.begin(), names.end(), model) != names.end(); },
          .usual_input = [](const GraphSpec&) { return imagenet_input; },
          .build = build,
          .norms =
              [](const std::string& model) {
                return model.starts_with("mobilenet_v3") ? Norms{.epsilon = 1e-3F, .momentum = 0.01F} : Norms{};
              },
          .other_name = renamed({{"mobilenet", "mobilenet_v1"},
                                 {"mobilenetv1", "mobilenet_v1"},
                                 {"mobilenet1.0", "mobilenet_v1"},
                                 {"mobilenetv2", "mobilenet_v2"},
                                 {"mobilenet_v2_1.0", "mobilenet_v2"},
                                 {"mobilenetv2_1.0", "mobilenet_v2"},
                                 {"mobilenetv3_small", "mobilenet_v3_small"},
                                 {"mobilenetv3_large", "mobilenet_v3_large"}})};
}

}  // namespace convoy
