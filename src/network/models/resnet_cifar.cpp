// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "core/errors.hpp"
#include "network/models/residual.hpp"

namespace convoy {
namespace {

/// Depths that are both 6n+2 and 9n+2 have basic blocks up to 146, bottlenecks from the 164 of He et al. 2016 on.
std::optional<BlockKind> find_kind(const ResnetName& name) {
  const bool basic = name.depth >= 8 && name.depth % 6 == 2, bottleneck = name.depth >= 11 && name.depth % 9 == 2;
  if (!name.suffix.empty() && name.suffix != "_cifar" && name.suffix != "_bottleneck") return std::nullopt;
  if (bottleneck && (!basic || name.depth >= 164 || name.suffix == "_bottleneck")) return BlockKind::bottleneck;
  if (basic && name.suffix != "_bottleneck") return BlockKind::basic;
  return std::nullopt;
}

/// v1: He et al. 2015, section 4.2, with projections (option B). v1.5: a bottleneck's stride in its 3x3. v2:
/// pre-activation, He et al. 2016, whose code strides in the first 1x1.
std::string version_of(const GraphSpec& spec, BlockKind kind) {
  const bool bottleneck = kind == BlockKind::bottleneck;
  std::string version = spec.option("resnet-version");
  if (version.empty()) return bottleneck ? "v2" : "v1";
  if (version == "v1.5" && !bottleneck) return "v1";  // the same network: see resnet.cpp
  if (version == "v1" || version == "v1.5" || version == "v2") return version;
  fail(Exit::usage, "{} has no version '{}'; use v1, v1.5 or v2", spec.model, version);
}

/// He et al. 2015 and 2016 for 32x32 images: three stages of n blocks, depth 6n+2 (basic) or 9n+2 (bottleneck).
Graph build_resnet_cifar(const GraphSpec& spec) {
  const ResnetName name = *parse_resnet(spec.model);
  const int depth = name.depth;
  const BlockKind kind = *find_kind(name);
  const std::string stem = spec.option("stem");
  if (!stem.empty() && stem != "small")
    fail(Exit::usage, "{} has no stem '{}'; it is made for small images", spec.model, stem);
  const std::string version = version_of(spec, kind);
  const int n = (depth - 2) / (kind == BlockKind::basic ? 6 : 9);
  const bool pre_activation = version == "v2";
  const Residual residual{.kind = kind,
                          .order = pre_activation ? Order::pre_activation : Order::post_activation,
                          .strided = version == "v1.5" ? 2 : 1,
                          .blocks = {n, n, n},
                          .widths = {16, 32, 64}};

  GraphBuilder net(spec, ActivationKind::relu);
  NodeId x = net.convolution("conv1", net.input(), {.out = 16, .kernel = 3});
  if (!pre_activation) x = net.activation("act", net.batch_norm("bn1", x));
  x = append_stages(net, x, residual, spec);
  x = net.apply("flatten", net.apply("avgpool", x, GlobalAveragePool{}), Flatten{});
  return net.classify("fc", x, fmt::format("{} {}", spec.model, version));
}

}  // namespace

Family resnet_cifar_family() {
  return {
      .names = {"resnet20", "resnet32", "resnet44", "resnet56", "resnet110", "resnet164", "resnet1001",
                "resnet50_cifar", "resnet101_cifar", "resnet152_cifar", "resnet200_cifar", "resnet110_bottleneck"},
      .help = {"resnetN, N = 6n+2 (20, 32, 44, 56, 110 ...): for CIFAR, basic blocks; v1, v2",
               "resnetN, N = 9n+2 (164, 1001 ...): for CIFAR, bottlenecks; v2, v1, v1.5",
               "resnetN_bottleneck: bottlenecks where N is 6n+2 too and below 164 (56, 110 ...)",
               "resnet50_cifar, 101_cifar, 152_cifar, 200_cifar: the form for CIFAR of depths that ImageNet has too"},
      .options = residual_options(),
      .has =
          [](const std::string& model) {
            const auto name = parse_resnet(model);
            if (!name || (name->suffix.empty() && is_imagenet_depth(name->depth))) return false;
            return find_kind(*name).has_value();
          },
      .usual_input = [](const GraphSpec&) { return cifar_input; },
      .build = build_resnet_cifar};
}

}  // namespace convoy
