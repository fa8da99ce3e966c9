// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "network/builder.hpp"
#include "network/models/family.hpp"

namespace convoy {
namespace {

/// inverted: a 1x1, a depthwise convolution, squeeze and excitation, a 1x1. fused: a whole convolution in place of the
/// first two, without excitation (Tan and Le 2021, figure 2).
enum class Block : std::uint8_t { inverted, fused };
constexpr auto inverted = Block::inverted, fused = Block::fused;

struct Stage {
  Block block;
  int expansion, kernel, stride;
  Index out;
  int blocks;
};
constexpr Stage first[] = {{inverted, 1, 3, 1, 16, 1}, {inverted, 6, 3, 2, 24, 2},  {inverted, 6, 5, 2, 40, 2},
                           {inverted, 6, 3, 2, 80, 3}, {inverted, 6, 5, 1, 112, 3}, {inverted, 6, 5, 2, 192, 4},
                           {inverted, 6, 3, 1, 320, 1}};
constexpr Stage v2_s[] = {{fused, 1, 3, 1, 24, 2},     {fused, 4, 3, 2, 48, 4},     {fused, 4, 3, 2, 64, 4},
                          {inverted, 4, 3, 2, 128, 6}, {inverted, 6, 3, 1, 160, 9}, {inverted, 6, 3, 2, 256, 15}};
constexpr Stage v2_m[] = {{fused, 1, 3, 1, 24, 3},     {fused, 4, 3, 2, 48, 5},      {fused, 4, 3, 2, 80, 5},
                          {inverted, 4, 3, 2, 160, 7}, {inverted, 6, 3, 1, 176, 14}, {inverted, 6, 3, 2, 304, 18},
                          {inverted, 6, 3, 1, 512, 5}};
constexpr Stage v2_l[] = {{fused, 1, 3, 1, 32, 4},      {fused, 4, 3, 2, 64, 7},      {fused, 4, 3, 2, 96, 7},
                          {inverted, 4, 3, 2, 192, 10}, {inverted, 6, 3, 1, 224, 19}, {inverted, 6, 3, 2, 384, 25},
                          {inverted, 6, 3, 1, 640, 7}};

struct Form {
  const char* name;
  double width, depth;  ///< multiples of the stages'
  Index size;           ///< of torchvision's validation
  float dropout;
  Norms norms = {};  ///< torchvision's
  std::span<const Stage> stages = first;
  Index stem = 32;
  Index last = 0;  ///< 0: four times the last stage's
};
constexpr Norms of_b5{.epsilon = 1e-3F, .momentum = 0.01F}, of_v2{.epsilon = 1e-3F};
constexpr std::array<Form, 11> forms = {{{"efficientnet_b0", 1.0, 1.0, 224, 0.2F},
                                         {"efficientnet_b1", 1.0, 1.1, 240, 0.2F},
                                         {"efficientnet_b2", 1.1, 1.2, 288, 0.3F},
                                         {"efficientnet_b3", 1.2, 1.4, 300, 0.3F},
                                         {"efficientnet_b4", 1.4, 1.8, 380, 0.4F},
                                         {"efficientnet_b5", 1.6, 2.2, 456, 0.4F, of_b5},
                                         {"efficientnet_b6", 1.8, 2.6, 528, 0.5F, of_b5},
                                         {"efficientnet_b7", 2.0, 3.1, 600, 0.5F, of_b5},
                                         {"efficientnet_v2_s", 1.0, 1.0, 384, 0.2F, of_v2, v2_s, 24, 1280},
                                         {"efficientnet_v2_m", 1.0, 1.0, 480, 0.3F, of_v2, v2_m, 24, 1280},
                                         {"efficientnet_v2_l", 1.0, 1.0, 480, 0.4F, of_v2, v2_l, 32, 1280}}};

/// Convolution, batch norm and activation, as torchvision numbers them.
NodeId append_unit(GraphBuilder& net, const std::string& name, NodeId x, const Convolution& attributes) {
  x = net.batch_norm(name + ".1", net.convolution(name + ".0", x, attributes));
  return net.activation(name + ".2", x);
}

NodeId append_block(GraphBuilder& net, const std::string& name, NodeId x, const Stage& stage, int stride) {
  const Index in = net.channels(x), hidden = in * stage.expansion;
  int next = 0;
  const auto module = [&] { return fmt::format("{}.block.{}", name, next++); };
  Convolution wide{.out = hidden, .kernel = stage.kernel, .stride = stride, .pad = stage.kernel / 2};
  NodeId y = x;
  if (stage.block == inverted) {
    if (stage.expansion != 1) y = append_unit(net, module(), y, {.out = hidden, .kernel = 1, .pad = 0});
    wide.groups = static_cast<int>(hidden);
  }
  y = append_unit(net, module(), y, wide);
  if (stage.block == inverted)
    y = net.excite(module(), y, {.squeezed = std::max<Index>(1, in / 4), .inside = ActivationKind::silu});
  if (stage.block == inverted || stage.expansion != 1) {
    const std::string last = module();
    y = net.batch_norm(last + ".1", net.convolution(last + ".0", y, {.out = stage.out, .kernel = 1, .pad = 0}));
  }
  return stride == 1 && in == stage.out ? net.apply(name + ".add", {y, x}, Add{}) : y;
}

/// Tan and Le 2019 (arXiv 1905.11946), table 1, and 2021 (arXiv 2104.00298), table 4, with torchvision's last stages;
/// names are torchvision's. Without stochastic depth.
Graph build_efficientnet(const GraphSpec& spec) {
  const Form& form = *find_form(forms, spec.model);
  const auto scaled = [&](Index channels) { return multiple_of_8(form.width * static_cast<double>(channels)); };
  GraphBuilder net(spec, ActivationKind::silu);
  NodeId x = append_unit(net, "features.0", net.input(), {.out = scaled(form.stem), .kernel = 3, .stride = 2});
  int number = 1;
  for (Stage stage : form.stages) {
    stage.out = scaled(stage.out);
    const int blocks = static_cast<int>(std::ceil(form.depth * stage.blocks));
    for (int i = 0; i < blocks; ++i)
      x = append_block(net, fmt::format("features.{}.{}", number, i), x, stage, i == 0 ? stage.stride : 1);
    ++number;
  }
  const Index last = form.last > 0 ? form.last : 4 * net.channels(x);
  x = append_unit(net, fmt::format("features.{}", number), x, {.out = last, .kernel = 1, .pad = 0});
  x = net.apply("flatten", net.apply("avgpool", x, GlobalAveragePool{}), Flatten{});
  x = net.apply("classifier.0", x, Dropout{dropout_of(spec, form.dropout)});
  return net.classify("classifier.1", x, spec.model);
}

}  // namespace

Family efficientnet_family() {
  return {.names = names_of(forms),
          .help = {"efficientnet_b0 to b7, v2_s, v2_m, v2_l: squeeze and excitation, SiLU; without stochastic depth"},
          .options = {dropout_option()},
          .published = {{"efficientnet_b0", 77.69},
                        {"efficientnet_b1", 78.64},
                        {"efficientnet_b2", 80.61},
                        {"efficientnet_b3", 82.01},
                        {"efficientnet_b4", 83.38},
                        {"efficientnet_b5", 83.44},
                        {"efficientnet_b6", 84.01},
                        {"efficientnet_b7", 84.12},
                        {"efficientnet_v2_s", 84.23},
                        {"efficientnet_v2_m", 85.11},
                        {"efficientnet_v2_l", 85.81}},
          .has = [](const std::string& model) { return find_form(forms, model) != nullptr; },
          .usual_input =
              [](const GraphSpec& spec) {
                return UsualInput{1000, 3, find_form(forms, spec.model)->size};
              },
          .build = build_efficientnet,
          .norms = [](const std::string& model) { return find_form(forms, model)->norms; },
          .centred_input = {"efficientnet_v2_l"},
          .other_name = renamed({{"efficientnetv2_s", "efficientnet_v2_s"},
                                 {"efficientnetv2_m", "efficientnet_v2_m"},
                                 {"efficientnetv2_l", "efficientnet_v2_l"}})};
}

}  // namespace convoy
