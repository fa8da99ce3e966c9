// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>

#include "network/builder.hpp"
#include "network/models/family.hpp"

namespace convoy {
namespace {

constexpr const char* only_name = "airbench94";
constexpr std::array<Index, 3> widths = {64, 256, 256};

/// Jordan 2024, "94% on CIFAR-10 in 3.29 seconds on a single GPU" (arXiv 2404.00498), after David Page's and Tysam's
/// networks: fixed 2x2 filters that whiten the patches of the images, and their negatives; three groups of two 3x3
/// convolutions, the first of which passes its inputs on; norms without a scale; logits divided by 9. Names are those
/// of the author's program.
Graph build_airbench(const GraphSpec& spec) {
  constexpr int side = 2;
  constexpr float logit_scale = 1.0F / 9;
  GraphBuilder net(spec, ActivationKind::gelu);
  const auto norm = [&](const std::string& name, NodeId from) {
    const NodeId made = net.batch_norm(name, from);
    net.fix(made);
    return made;
  };

  NodeId x = net.input();
  const Convolution whitening{
      .in = spec.channels, .out = 2 * spec.channels * side * side, .kernel = side, .pad = 0, .bias = true};
  x = net.append("whiten", {x}, whitening, {Initialiser::Fill::whitening});
  net.fix(x);
  x = net.activation("layers.0", x);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::string group = fmt::format("layers.{}.", i + 1);
    const auto named = [&](const char* part) { return group + part; };
    x = net.convolution(named("conv1"), x, {.out = widths[i]}, {Initialiser::Fill::dirac});
    x = net.apply(named("pool"), x, Pool{});
    x = net.activation(named("activ1"), norm(named("norm1"), x));
    x = net.convolution(named("conv2"), x, {.out = widths[i]}, {Initialiser::Fill::dirac});
    x = net.activation(named("activ2"), norm(named("norm2"), x));
  }
  x = net.apply("layers.4", x, Pool{.kernel = 3, .stride = 3});
  x = net.apply("flatten", x, Flatten{});
  const Linear head{.in = net.channels(x), .out = spec.classes, .bias = false};
  x = net.append("head", {x}, head, net.usual_start(head, head.in, GraphBuilder::Place::last));
  x = net.apply("scale", x, Activation{.kind = ActivationKind::scale, .slope = logit_scale});
  return net.finish(x, only_name);
}

}  // namespace

Family airbench_family() {
  return {.names = {only_name},
          .help = {"airbench94: for CIFAR-10 in few epochs; its first filters whiten the data and never train"},
          .has = [](const std::string& model) { return model == only_name; },
          .usual_input = [](const GraphSpec&) { return cifar_input; },
          .build = build_airbench};
}

}  // namespace convoy
