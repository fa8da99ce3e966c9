// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <span>

#include "core/errors.hpp"
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

constexpr const char* width_option = "width-mult";

/// Channels of a layer that has so many at a width of 1.
class Width {
 public:
  explicit Width(const GraphSpec& spec) {
    const std::string text = spec.option(width_option);
    if (!text.empty()) factor_ = std::strtod(text.c_str(), nullptr);
    if (!(factor_ > 0))
      fail(Exit::usage, "--width-mult {} is not possible (a width is above 0); give 1 for the published width", text);
  }
  Index operator()(Index channels) const { return multiple_of_8(factor_ * static_cast<double>(channels)); }
  /// Of a layer that narrow networks leave as it is.
  Index at_least(Index channels) const { return std::max(channels, (*this)(channels)); }

 private:
  double factor_ = 1;
};

/// Howard et al. 2017 (arXiv 1704.04861), table 1.
Graph build_v1(const GraphSpec& spec) {
  struct Layer {
    Index out;
    int stride;
  };
  constexpr Layer layers[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                              {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
  const Width width(spec);
  GraphBuilder net(spec, ActivationKind::relu);
  NodeId x = append_unit(net, net.input(), {"conv1", "bn1", "act1"}, {.out = width(32), .kernel = 3, .stride = 2});
  int number = 1;
  for (const Layer& layer : layers) {
    const std::string name = fmt::format("block{}", number++);
    x = append_unit(net, x, sequence(name + ".depthwise"), depthwise(net.channels(x), layer.stride));
    x = append_unit(net, x, sequence(name + ".pointwise"), pointwise(width(layer.out)));
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
  const Width width(spec);
  GraphBuilder net(spec, ActivationKind::relu6);
  NodeId x = append_unit(net, net.input(), sequence("features.0"), {.out = width(32), .kernel = 3, .stride = 2});
  int number = 1;
  for (const Stage& stage : stages)
    for (int i = 0; i < stage.blocks; ++i) {
      const std::string name = fmt::format("features.{}.conv", number++);
      const int stride = i == 0 ? stage.stride : 1;
      const Index out = width(stage.out);
      int next = 0;
      const auto module = [&] { return fmt::format("{}.{}", name, next++); };
      NodeId y = x;
      const Index hidden = stage.expansion * net.channels(x);
      if (stage.expansion != 1) y = append_unit(net, y, sequence(module()), pointwise(hidden));
      y = append_unit(net, y, sequence(module()), depthwise(hidden, stride));
      y = net.convolution(module(), y, pointwise(out));
      y = net.batch_norm(module(), y);  // a linear bottleneck: no activation follows
      const bool same_shape = stride == 1 && net.channels(x) == out;
      x = same_shape ? net.apply(name + ".add", {y, x}, Add{}) : y;
    }
  x = append_unit(net, x, sequence(fmt::format("features.{}", number)), pointwise(width.at_least(1280)));
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
  const Width width(spec);
  GraphBuilder net(spec, swish);
  NodeId x = append_unit(net, net.input(), sequence("features.0"), {.out = width(16), .kernel = 3, .stride = 2});
  int number = 1;
  for (Bottleneck layer : is_large ? std::span<const Bottleneck>(large) : small) {
    layer.hidden = width(layer.hidden);
    layer.out = width(layer.out);
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
  x = net.activation("classifier.1", net.linear("classifier.0", x, width(is_large ? 1280 : 1024)));
  return net.classify("classifier.3", net.apply("classifier.2", x, Dropout{dropout_of(spec, 0.2F)}), spec.model);
}

Graph build(const GraphSpec& spec) {
  if (spec.model == "mobilenet_v1") return build_v1(spec);
  return spec.model == "mobilenet_v2" ? build_v2(spec) : build_v3(spec);
}

/// With the width in the name, as GluonCV (`mobilenet0.5`, `mobilenetv2_0.75`) and timm (`mobilenetv2_050`) have it.
std::optional<NamedNetwork> name_with_width(const std::string& name) {
  for (const auto& [stem, model] : {std::pair{"mobilenet_v2_", "mobilenet_v2"},
                                    {"mobilenetv2_", "mobilenet_v2"},
                                    {"mobilenetv1_", "mobilenet_v1"},
                                    {"mobilenet", "mobilenet_v1"}}) {
    if (!name.starts_with(stem)) continue;
    const std::string text = name.substr(std::string(stem).size());
    const bool percent = std::string(stem).ends_with('_') && text.size() == 3 && text.find('.') == std::string::npos;
    if (text.find_first_not_of("0123456789.") != std::string::npos) return std::nullopt;  // `inf` is a number too
    double width = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), width, std::chars_format::fixed);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size() || !(width > 0)) return std::nullopt;
    if (!percent && text.find('.') == std::string::npos) return std::nullopt;
    if (percent) width /= 100;
    if (width == 1) return NamedNetwork{model};
    return NamedNetwork{model, {{width_option, fmt::format("{}", width)}}};
  }
  return std::nullopt;
}

const std::vector<std::string> names{"mobilenet_v1", "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large"};

}  // namespace

Family mobilenet_family() {
  return {.names = names,
          .help = {"mobilenet_v1, mobilenet_v2, mobilenet_v3_small, mobilenet_v3_large: depthwise convolutions"},
          .options = {dropout_option(),
                      {.name = width_option,
                       .form = ModelOption::Form::factor,
                       .otherwise = "1",
                       .help = "mobilenet: factor of the channels of all layers, which become multiples of 8",
                       .lacks = "width multiplier",
                       .aliases = {"width-multiplier"}}},
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
                                 {"mobilenetv2", "mobilenet_v2"},
                                 {"mobilenetv3_small", "mobilenet_v3_small"},
                                 {"mobilenetv3_large", "mobilenet_v3_large"}}),
          .name_with_width = name_with_width};
}

}  // namespace convoy
