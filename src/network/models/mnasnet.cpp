// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>

#include "network/builder.hpp"
#include "network/models/family.hpp"

namespace convoy {
namespace {

struct Form {
  const char* name;
  double width;  ///< multiple of the published channels
};
constexpr std::array<Form, 4> forms = {
    {{"mnasnet0_5", 0.5}, {"mnasnet0_75", 0.75}, {"mnasnet1_0", 1}, {"mnasnet1_3", 1.3}}};

/// Appends layers that torchvision counts: `layers.0`, `layers.1`, ...
class Sequence {
 public:
  Sequence(GraphBuilder& net, std::string name) : net_(net), name_(std::move(name)) {}

  std::string next() { return fmt::format("{}.{}", name_, number_++); }
  NodeId linear_unit(NodeId x, const Convolution& attributes) {
    x = net_.convolution(next(), x, attributes);
    return net_.batch_norm(next(), x);
  }
  NodeId unit(NodeId x, const Convolution& attributes) {
    x = linear_unit(x, attributes);
    return net_.activation(next(), x);
  }
  NodeId depthwise(NodeId x, int kernel, int stride) {
    const Index channels = net_.channels(x);
    return unit(
        x,
        {.out = channels, .kernel = kernel, .stride = stride, .pad = kernel / 2, .groups = static_cast<int>(channels)});
  }

 private:
  GraphBuilder& net_;
  std::string name_;
  int number_ = 0;
};

Convolution pointwise(Index out) { return {.out = out, .kernel = 1, .pad = 0}; }

struct Stage {
  int kernel, stride, expansion;
  Index out;
  int blocks;
};
constexpr Stage stages[] = {{3, 2, 3, 24, 3}, {5, 2, 3, 40, 3},  {5, 2, 6, 80, 3},
                            {3, 1, 6, 96, 2}, {5, 2, 6, 192, 4}, {3, 1, 6, 320, 1}};

/// Tan et al. 2018 (arXiv 1807.11626) without squeeze and excitation, as torchvision has it since version 2 of its
/// state dicts: the width multiplier also applies to the stem.
Graph build_mnasnet(const GraphSpec& spec) {
  const Form& form = *find_form(forms, spec.model);
  const auto scaled = [&](Index channels) { return multiple_of_8(form.width * static_cast<double>(channels)); };
  GraphBuilder net(spec, ActivationKind::relu);
  Sequence layers(net, "layers");
  NodeId x = layers.unit(net.input(), {.out = scaled(32), .kernel = 3, .stride = 2});
  x = layers.linear_unit(layers.depthwise(x, 3, 1), pointwise(scaled(16)));
  for (const Stage& stage : stages) {
    const std::string name = layers.next();
    for (int i = 0; i < stage.blocks; ++i) {
      const std::string block = fmt::format("{}.{}", name, i);
      const int stride = i == 0 ? stage.stride : 1;
      Sequence inside(net, block + ".layers");
      NodeId y = inside.unit(x, pointwise(stage.expansion * net.channels(x)));
      y = inside.depthwise(y, stage.kernel, stride);
      y = inside.linear_unit(y, pointwise(scaled(stage.out)));
      const bool same_shape = stride == 1 && net.channels(x) == net.channels(y);
      x = same_shape ? net.apply(block + ".add", {y, x}, Add{}) : y;
    }
  }
  x = layers.unit(x, pointwise(1280));
  x = net.apply("flatten", net.apply("avgpool", x, GlobalAveragePool{}), Flatten{});
  return net.classify("classifier.1", net.apply("classifier.0", x, Dropout{dropout_of(spec, 0.2F)}), spec.model);
}

}  // namespace

Family mnasnet_family() {
  return {.names = names_of(forms),
          .help = {"mnasnet0_5, 0_75, 1_0, 1_3: inverted bottlenecks of 3x3 and 5x5; slow running statistics"},
          .options = {dropout_option()},
          .published = {{"mnasnet0_5", 67.73}, {"mnasnet0_75", 71.18}, {"mnasnet1_0", 73.46}, {"mnasnet1_3", 76.51}},
          .has = [](const std::string& model) { return find_form(forms, model) != nullptr; },
          .usual_input = [](const GraphSpec&) { return imagenet_input; },
          .build = build_mnasnet,
          .norms = [](const std::string&) { return Norms{.momentum = 3e-4F}; },
          .other_name = renamed({{"mnasnet_050", "mnasnet0_5"},
                                 {"mnasnet_075", "mnasnet0_75"},
                                 {"mnasnet_100", "mnasnet1_0"},
                                 {"mnasnet_b1", "mnasnet1_0"}})};
}

}  // namespace convoy
