// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <map>
#include <optional>
#include <regex>

#include "core/errors.hpp"
#include "network/models/residual.hpp"

namespace convoy {
namespace {

std::vector<int> blocks_of(int depth) {
  switch (depth) {
    case 18:
      return {2, 2, 2, 2};
    case 34:
    case 50:
      return {3, 4, 6, 3};
    case 101:
      return {3, 4, 23, 3};
    case 152:
      return {3, 8, 36, 3};
    case 200:
      return {3, 24, 36, 3};
    case 269:
      return {3, 30, 48, 8};
    default:
      break;
  }
  fail(Exit::usage, "no resnet of depth {} for ImageNet; use 18, 34, 50, 101, 152, 200 or 269", depth);
}

/// A name for ImageNet, and what its bottlenecks look like.
struct Form {
  int depth = 0;
  int groups = 1;
  Index group_width = 64;
  bool excited = false;
};
/// `resnet50`; ResNeXt (Xie et al. 2017) `resnext50_32x4d`: groups x width of one; wide ResNet (Zagoruyko and Komodakis
/// 2016) `wide_resnet50_2`: the 3x3 is twice as wide. With squeeze and excitation (Hu et al. 2018) by timm's names:
/// `seresnet50`, `seresnext50_32x4d`.
std::optional<Form> find_form(const std::string& model) {
  if (model.starts_with("seres")) {
    auto plain = find_form(model.substr(2));
    if (plain && plain->depth >= 50 && plain->group_width != 128) return plain->excited = true, plain;
    return std::nullopt;
  }
  const auto name = parse_resnet(model);
  if (name && name->suffix.empty() && is_imagenet_depth(name->depth)) return Form{.depth = name->depth};
  static const std::map<std::string, Form> others{
      {"resnext50_32x4d", {50, 32, 4}},   {"resnext101_32x4d", {101, 32, 4}}, {"resnext101_32x8d", {101, 32, 8}},
      {"resnext101_64x4d", {101, 64, 4}}, {"resnext152_32x4d", {152, 32, 4}}, {"wide_resnet50_2", {50, 1, 128}},
      {"wide_resnet101_2", {101, 1, 128}}};
  const auto found = others.find(model);
  return found != others.end() ? std::optional(found->second) : std::nullopt;
}

/// v1: stride in the first convolution of a block (He et al. 2015). v1.5: in the 3x3 of a bottleneck (torchvision), so
/// for basic blocks it is v1. v2:
/// pre-activation (He et al. 2016), stride in the 3x3 as in TensorFlow's and MXNet's models.
std::string version_of(const GraphSpec& spec, BlockKind kind) {
  const bool bottleneck = kind == BlockKind::bottleneck;
  std::string version = spec.option("resnet-version");
  if (version.empty()) return bottleneck ? "v1.5" : "v1";
  if (version == "v1.5" && !bottleneck) return "v1";  // no 1x1 convolution to move the stride from: the same network
  if (version == "v1" || version == "v1.5" || version == "v2") return version;
  fail(Exit::usage, "{} has no version '{}'; use v1, v1.5 or v2", spec.model, version);
}

bool has_small_stem(const GraphSpec& spec) {
  const std::string stem = spec.option("stem");
  if (stem.empty() || stem == "imagenet") return false;
  if (stem == "small") return true;
  fail(Exit::usage, "unknown stem '{}'; use imagenet or small", stem);
}

/// He et al. 2015 for ImageNet: 18 and 34 with basic blocks, from 50 on with bottlenecks; 200 is that of He et al.
/// 2016.
Graph build_resnet(const GraphSpec& spec) {
  const Form form = *find_form(spec.model);
  const int depth = form.depth;
  Residual residual{.kind = depth < 50 ? BlockKind::basic : BlockKind::bottleneck,
                    .blocks = blocks_of(depth),
                    .widths = {64, 128, 256, 512},
                    .groups = form.groups,
                    .excited = form.excited,
                    .group_width = form.group_width};
  const std::string version = version_of(spec, residual.kind);
  const bool small_stem = has_small_stem(spec), pre_activation = version == "v2";
  residual.order = pre_activation ? Order::pre_activation : Order::post_activation;
  residual.strided = version == "v1" ? 1 : 2;

  GraphBuilder net(spec, ActivationKind::relu);
  NodeId x = net.input();
  x = small_stem ? net.convolution("conv1", x, {.out = 64, .kernel = 3})
                 : net.convolution("conv1", x, {.out = 64, .kernel = 7, .stride = 2, .pad = 3});
  // In pre-activation order the first block brings norm and activation.
  if (!pre_activation) x = net.activation("act", net.batch_norm("bn1", x));
  if (!small_stem) x = net.apply("maxpool", x, Pool{.kernel = 3, .stride = 2, .pad = 1});
  x = append_stages(net, x, residual, spec);
  x = net.apply("flatten", net.apply("avgpool", x, GlobalAveragePool{}), Flatten{});
  return net.classify("fc", x, fmt::format("{} {}{}", spec.model, version, small_stem ? " (small stem)" : ""));
}

/// `resnet50_v2`, `resnet_v2_50`: the version that GluonCV, MXNet's symbols and TensorFlow put into the name; v1b has
/// its stride in the 3x3. `se_resnet50`. A ResNeXt without widths is that of MXNet, 32x4d.
std::optional<NamedNetwork> other_name(const std::string& name) {
  static const std::map<std::string, std::string> plain{{"resnext50", "resnext50_32x4d"},
                                                        {"resnext101", "resnext101_32x4d"},
                                                        {"resnext152", "resnext152_32x4d"},
                                                        {"wide_resnet50", "wide_resnet50_2"},
                                                        {"wide_resnet101", "wide_resnet101_2"}};
  if (const auto found = plain.find(name); found != plain.end()) return NamedNetwork{found->second};
  if (name.starts_with("se_res")) return NamedNetwork{"se" + name.substr(3)};
  static const std::regex depth_first("resnet([0-9]+)_(v1|v1b|v1\\.5|v2)"), version_first("resnet_(v1|v2)_([0-9]+)");
  std::smatch parts;
  const bool first = std::regex_match(name, parts, depth_first);
  if (!first && !std::regex_match(name, parts, version_first)) return std::nullopt;
  const std::string depth = parts[first ? 1 : 2], version = parts[first ? 2 : 1];
  // GluonCV's v1b has the stride in the 3x3 of a bottleneck; basic blocks have one version.
  const bool basic = depth == "18" || depth == "34";
  return NamedNetwork{"resnet" + depth, {{"resnet-version", version != "v1b" ? version : basic ? "v1" : "v1.5"}}};
}

}  // namespace

Family resnet_family() {
  return {
      .names = {"resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnet200", "resnet269",
                "resnext50_32x4d", "resnext101_32x4d", "resnext101_32x8d", "resnext101_64x4d", "resnext152_32x4d",
                "wide_resnet50_2", "wide_resnet101_2", "seresnet50", "seresnet101", "seresnet152", "seresnext50_32x4d"},
      .help = {"resnet18, 34, 50, 101, 152, 200, 269: for ImageNet; v1, v1.5 (bottlenecks), v2",
               "resnext50_32x4d, resnext101_32x4d, 101_32x8d, 101_64x4d, resnext152_32x4d: grouped bottlenecks",
               "wide_resnet50_2, wide_resnet101_2: bottlenecks of twice the inner width",
               "seresnet50, 101, 152, seresnext50_32x4d, ...: with squeeze and excitation"},
      .options = residual_options(),
      .published = {{"resnet18", 69.76},
                    {"resnet34", 73.31},
                    {"resnet50", 76.13},
                    {"resnet101", 77.37},
                    {"resnet152", 78.31},
                    {"resnext50_32x4d", 77.62},
                    {"resnext101_32x8d", 79.31},
                    {"resnext101_64x4d", 83.25},
                    {"wide_resnet50_2", 78.47},
                    {"wide_resnet101_2", 78.85}},
      .has = [](const std::string& model) { return find_form(model).has_value(); },
      .usual_input =
          [](const GraphSpec& spec) { return spec.option("stem") == "small" ? cifar_input : imagenet_input; },
      .build = build_resnet,
      .other_name = other_name};
}

}  // namespace convoy
