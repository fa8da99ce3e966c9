// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "network/builder.hpp"
#include "network/models/family.hpp"

namespace convoy {
namespace {

NodeId append_unit(GraphBuilder& net, const std::string& name, const std::string& activation, NodeId x,
                   const Convolution& attributes, Initialiser start) {
  return net.activation(activation, net.convolution(name, x, attributes, start));
}

/// A squeeze to few channels, and two expansions side by side.
NodeId append_fire(GraphBuilder& net, const std::string& name, NodeId x, Index squeezed, Index expanded,
                   Initialiser start) {
  const auto unit = [&](const char* part, NodeId from, Index out, int kernel) {
    return append_unit(net, fmt::format("{}.{}", name, part), fmt::format("{}.{}_activation", name, part), from,
                       {.out = out, .kernel = kernel, .pad = kernel / 2, .bias = true}, start);
  };
  x = unit("squeeze", x, squeezed, 1);
  return net.apply(name + ".concat", {unit("expand1x1", x, expanded, 1), unit("expand3x3", x, expanded, 3)},
                   Concatenation{});
}

/// Iandola et al. 2016 (arXiv 1602.07360), table 1, and its version 1.1, whose pools come earlier; names are
/// torchvision's. The logits are the means of a convolution's maps.
Graph build_squeezenet(const GraphSpec& spec) {
  struct Fire {
    Index squeezed, expanded;  ///< 0: a pool
  };
  constexpr Fire pool{0, 0};
  constexpr Fire first[] = {pool,      {16, 64},  {16, 64},  {32, 128}, pool,     {32, 128},
                            {48, 192}, {48, 192}, {64, 256}, pool,      {64, 256}};
  constexpr Fire second[] = {pool, {16, 64},  {16, 64},  pool,      {32, 128}, {32, 128},
                             pool, {48, 192}, {48, 192}, {64, 256}, {64, 256}};
  const bool early = spec.model == "squeezenet1_1";
  // As torchvision: by He's uniform of the fan-in, since a squeeze has fewer outputs than inputs and no norm follows,
  // and small in the convolution that makes the classes. Under tanh Glorot's, as everywhere.
  const bool tanh = spec.activation == "tanh";
  const Initialiser inside{tanh ? Initialiser::Fill::xavier_uniform : Initialiser::Fill::he_fan_in_uniform};
  const Initialiser last = tanh ? inside : Initialiser{Initialiser::Fill::normal, 0.01F};
  GraphBuilder net(spec, ActivationKind::relu);
  NodeId x =
      append_unit(net, "features.0", "features.1", net.input(),
                  {.out = early ? 64 : 96, .kernel = early ? 3 : 7, .stride = 2, .pad = 0, .bias = true}, inside);
  int number = 2;
  for (const Fire& layer : early ? second : first) {
    const std::string name = fmt::format("features.{}", number++);
    x = layer.squeezed == 0 ? net.apply(name, x, Pool{.kernel = 3, .stride = 2, .ceil = true})
                            : append_fire(net, name, x, layer.squeezed, layer.expanded, inside);
  }
  x = net.apply("classifier.0", x, Dropout{dropout_of(spec, 0.5F)});
  x = append_unit(net, "classifier.1", "classifier.2", x, {.out = spec.classes, .kernel = 1, .pad = 0, .bias = true},
                  last);
  return net.finish(net.apply("flatten", net.apply("classifier.3", x, GlobalAveragePool{}), Flatten{}), spec.model);
}

}  // namespace

Family squeezenet_family() {
  return {.names = {"squeezenet1_0", "squeezenet1_1"},
          .help = {"squeezenet1_0, squeezenet1_1"},
          .options = {dropout_option()},
          .published = {{"squeezenet1_0", 58.09}, {"squeezenet1_1", 58.18}},
          .has = [](const std::string& model) { return model == "squeezenet1_0" || model == "squeezenet1_1"; },
          .usual_input = [](const GraphSpec&) { return imagenet_input; },
          .build = build_squeezenet,
          .other_name = renamed({{"squeezenet1.0", "squeezenet1_0"}, {"squeezenet1.1", "squeezenet1_1"}})};
}

}  // namespace convoy
