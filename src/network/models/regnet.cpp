// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "network/builder.hpp"
#include "network/models/family.hpp"

namespace convoy {
namespace {

/// The settings that the rule of Radosavovic et al. 2020 (arXiv 2003.13678) gives for each size, with torchvision's
/// rounding of widths to whole groups.
struct Form {
  const char* name;
  std::array<Index, 4> widths;
  std::array<int, 4> blocks;
  Index group_width;  ///< narrower stages are one group
  bool excited;
  double top1;
};
constexpr std::array<Form, 14> forms = {{{"regnet_y_400mf", {48, 104, 208, 440}, {1, 3, 6, 6}, 8, true, 74.05},
                                         {"regnet_y_800mf", {64, 144, 320, 784}, {1, 3, 8, 2}, 16, true, 76.42},
                                         {"regnet_y_1_6gf", {48, 120, 336, 888}, {2, 6, 17, 2}, 24, true, 77.95},
                                         {"regnet_y_3_2gf", {72, 216, 576, 1512}, {2, 5, 13, 1}, 24, true, 78.95},
                                         {"regnet_y_8gf", {224, 448, 896, 2016}, {2, 4, 10, 1}, 56, true, 80.03},
                                         {"regnet_y_16gf", {224, 448, 1232, 3024}, {2, 4, 11, 1}, 112, true, 80.42},
                                         {"regnet_y_32gf", {232, 696, 1392, 3712}, {2, 5, 12, 1}, 232, true, 80.88},
                                         {"regnet_x_400mf", {32, 64, 160, 400}, {1, 2, 7, 12}, 16, false, 72.83},
                                         {"regnet_x_800mf", {64, 128, 288, 672}, {1, 3, 7, 5}, 16, false, 75.21},
                                         {"regnet_x_1_6gf", {72, 168, 408, 912}, {2, 4, 10, 2}, 24, false, 77.04},
                                         {"regnet_x_3_2gf", {96, 192, 432, 1008}, {2, 6, 15, 2}, 48, false, 78.36},
                                         {"regnet_x_8gf", {80, 240, 720, 1920}, {2, 5, 15, 1}, 120, false, 79.34},
                                         {"regnet_x_16gf", {256, 512, 896, 2048}, {2, 6, 13, 1}, 128, false, 80.06},
                                         {"regnet_x_32gf", {336, 672, 1344, 2520}, {2, 7, 13, 1}, 168, false, 80.62}}};

NodeId append_linear_unit(GraphBuilder& net, const std::string& name, NodeId x, const Convolution& attributes) {
  return net.batch_norm(name + ".1", net.convolution(name + ".0", x, attributes));
}
NodeId append_unit(GraphBuilder& net, const std::string& name, NodeId x, const Convolution& attributes) {
  return net.activation(name + ".2", append_linear_unit(net, name, x, attributes));
}

NodeId append_block(GraphBuilder& net, const std::string& name, NodeId x, const Form& form, Index out, int stride) {
  const Index in = net.channels(x);
  NodeId shortcut = x;
  if (stride != 1 || in != out)
    shortcut = append_linear_unit(net, name + ".proj", x, {.out = out, .kernel = 1, .stride = stride, .pad = 0});
  const auto groups = static_cast<int>(out / std::min(out, form.group_width));
  NodeId y = append_unit(net, name + ".f.a", x, {.out = out, .kernel = 1, .pad = 0});
  y = append_unit(net, name + ".f.b", y, {.out = out, .kernel = 3, .stride = stride, .groups = groups});
  if (form.excited) y = net.excite(name + ".f.se", y, {.squeezed = in / 4});
  y = append_linear_unit(net, name + ".f.c", y, {.out = out, .kernel = 1, .pad = 0});
  return net.activation(name + ".activation", net.apply(name + ".add", {y, shortcut}, Add{}));
}

/// Names are torchvision's.
Graph build_regnet(const GraphSpec& spec) {
  const Form& form = *find_form(forms, spec.model);
  GraphBuilder net(spec, ActivationKind::relu);
  NodeId x = append_unit(net, "stem", net.input(), {.out = 32, .kernel = 3, .stride = 2});
  for (std::size_t stage = 1; stage <= form.widths.size(); ++stage)
    for (int i = 0; i < form.blocks[stage - 1]; ++i)
      x = append_block(net, fmt::format("trunk_output.block{0}.block{0}-{1}", stage, i), x, form,
                       form.widths[stage - 1], i == 0 ? 2 : 1);
  x = net.apply("flatten", net.apply("avgpool", x, GlobalAveragePool{}), Flatten{});
  return net.classify("fc", x, spec.model);
}

std::map<std::string, double> published_top1_of_forms() {
  std::map<std::string, double> published;
  for (const Form& form : forms) published[form.name] = form.top1;
  return published;
}

/// `regnety_004`: timm's. Those of its names that aren't here, such as `regnetx_004`, round widths otherwise.
OtherName timm_name() {
  return renamed({{"regnety_004", "regnet_y_400mf"},
                  {"regnety_008_tv", "regnet_y_800mf"},
                  {"regnety_016", "regnet_y_1_6gf"},
                  {"regnety_032", "regnet_y_3_2gf"},
                  {"regnety_080_tv", "regnet_y_8gf"},
                  {"regnety_160", "regnet_y_16gf"},
                  {"regnety_320", "regnet_y_32gf"},
                  {"regnetx_004_tv", "regnet_x_400mf"},
                  {"regnetx_008", "regnet_x_800mf"},
                  {"regnetx_016", "regnet_x_1_6gf"},
                  {"regnetx_032", "regnet_x_3_2gf"},
                  {"regnetx_080", "regnet_x_8gf"},
                  {"regnetx_160", "regnet_x_16gf"},
                  {"regnetx_320", "regnet_x_32gf"}});
}

}  // namespace

Family regnet_family() {
  return {.names = names_of(forms),
          .help = {"regnet_x_400mf, x_800mf, x_1_6gf, x_3_2gf, x_8gf, x_16gf, x_32gf: grouped bottlenecks",
                   "regnet_y_400mf, ..., y_32gf: with squeeze and excitation, too"},
          .published = published_top1_of_forms(),
          .has = [](const std::string& model) { return find_form(forms, model) != nullptr; },
          .usual_input = [](const GraphSpec&) { return imagenet_input; },
          .build = build_regnet,
          .other_name = timm_name()};
}

}  // namespace convoy
