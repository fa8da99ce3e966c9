// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "core/errors.hpp"
#include "network/models/residual.hpp"

namespace convoy {
namespace {

/// v1: He et al. 2015, section 4.2, with projections (option B). v1.5: a bottleneck's stride in its 3x3. v2:
/// pre-activation, He et al. 2016, whose code strides in the first 1x1.
std::string version_of(const GraphSpec& spec, BlockKind kind) {
  const bool bottleneck = kind == BlockKind::bottleneck;
  if (spec.version.empty()) return bottleneck ? "v2" : "v1";
  if (spec.version == "v1" || spec.version == "v2" || (spec.version == "v1.5" && bottleneck)) return spec.version;
  fail(Exit::usage, "{} has no version '{}'; use v1, {}v2", spec.model, spec.version, bottleneck ? "v1.5 or " : "or ");
}

}  // namespace

Graph build_resnet_cifar(const GraphSpec& spec, int depth, BlockKind kind) {
  if (!spec.stem.empty() && spec.stem != "small")
    fail(Exit::usage, "{} has no stem '{}'; it is made for small images", spec.model, spec.stem);
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
  x = append_stages(net, x, residual, spec.zero_init_residual);
  x = net.apply("flatten", net.apply("avgpool", x, GlobalAveragePool{}), Flatten{});
  return net.classify("fc", x, fmt::format("{} {}", spec.model, version));
}

}  // namespace convoy
