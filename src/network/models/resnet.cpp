// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

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
    default:
      break;
  }
  fail(Exit::usage, "no resnet of depth {} for ImageNet; use 18, 34, 50, 101 or 152", depth);
}

/// v1: stride in the first convolution of a block (He et al. 2015). v1.5: in the 3x3 of a bottleneck (torchvision). v2:
/// pre-activation (He et al. 2016), stride in the 3x3 as in TensorFlow's and MXNet's models.
std::string version_of(const GraphSpec& spec, BlockKind kind) {
  const bool bottleneck = kind == BlockKind::bottleneck;
  std::string version = spec.option("resnet-version");
  if (version.empty()) return bottleneck ? "v1.5" : "v1";
  if (version == "v1" || version == "v2" || (version == "v1.5" && bottleneck)) return version;
  if (version == "v1.5")
    fail(Exit::usage, "{} has no version v1.5 (its blocks have no 1x1 convolution to move the stride from); use v1",
         spec.model);
  fail(Exit::usage, "{} has no version '{}'; use v1, {}v2", spec.model, version, bottleneck ? "v1.5 or " : "or ");
}

bool has_small_stem(const GraphSpec& spec) {
  const std::string stem = spec.option("stem");
  if (stem.empty() || stem == "imagenet") return false;
  if (stem == "small") return true;
  fail(Exit::usage, "unknown stem '{}'; use imagenet or small", stem);
}

/// He et al. 2015 for ImageNet: 18 and 34 with basic blocks, 50, 101 and 152 with bottlenecks.
Graph build_resnet(const GraphSpec& spec) {
  const int depth = parse_resnet(spec.model)->depth;
  Residual residual{.kind = depth < 50 ? BlockKind::basic : BlockKind::bottleneck,
                    .blocks = blocks_of(depth),
                    .widths = {64, 128, 256, 512}};
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

}  // namespace

Family resnet_family() {
  return {.names = {"resnet18", "resnet34", "resnet50", "resnet101", "resnet152"},
          .help = {"resnet18, 34, 50, 101, 152: for ImageNet; v1, v1.5 (bottlenecks), v2"},
          .options = residual_options(),
          .has =
              [](const std::string& model) {
                const auto name = parse_resnet(model);
                return name && name->suffix.empty() && is_imagenet_depth(name->depth);
              },
          .usual_input =
              [](const GraphSpec& spec) { return spec.option("stem") == "small" ? cifar_input : imagenet_input; },
          .build = build_resnet};
}

}  // namespace convoy
