// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "core/errors.hpp"
#include "network/builder.hpp"
#include "network/models/family.hpp"

namespace convoy {
namespace {

constexpr float usual_dropout = 0.5F;
constexpr Pool pool{.mode = Pool::Mode::max, .kernel = 3, .stride = 2};
/// The papers multiply alpha by the sum over the window, the node by the sum over the window's size.
constexpr LocalResponseNorm norm_2012{.size = 5, .alpha = 5 * 1e-4F, .beta = 0.75F, .k = 2};
constexpr LocalResponseNorm norm_ray{.size = 11, .alpha = 11 * 1e-4F, .beta = 0.75F, .k = 1};

Convolution layer(Index out, int kernel, int groups = 1) {
  return {.out = out, .kernel = kernel, .stride = 1, .pad = kernel / 2, .groups = groups, .bias = true};
}

/// Krizhevsky, Sutskever, Hinton 2012, section 3.5; layer names of Caffe's model.
Graph build_2012(const GraphSpec& spec) {
  GraphBuilder net(spec, ActivationKind::relu);
  NodeId x = net.input();
  const auto convolve = [&](int number, const Convolution& attributes) {
    x = net.convolution(fmt::format("conv{}", number), x, attributes);
    x = net.activation(fmt::format("relu{}", number), x);
  };
  const auto normalise = [&](int number) {
    x = net.apply(fmt::format("norm{}", number), x, norm_2012);
    x = net.apply(fmt::format("pool{}", number), x, pool);
  };
  convolve(1, {.out = 96, .kernel = 11, .stride = 4, .pad = 2, .bias = true});
  normalise(1);
  convolve(2, layer(256, 5, 2));
  normalise(2);
  convolve(3, layer(384, 3));
  convolve(4, layer(384, 3, 2));
  convolve(5, layer(256, 3, 2));
  x = net.apply("flatten", net.apply("pool5", x, pool), Flatten{});
  for (const int number : {6, 7}) {
    x = net.activation(fmt::format("relu{}", number), net.linear(fmt::format("fc{}", number), x, 4096));
    x = net.apply(fmt::format("drop{}", number), x, Dropout{dropout_of(spec, usual_dropout)});
  }
  return net.classify("fc8", x, "alexnet 2012");
}

/// The variant of Ray's examples: one tower, pooling before normalisation, dense layers with tanh. Its first
/// convolution pads as TensorFlow's SAME, 3 pixels before and 4 after; here 4 on both sides, which gives the same 56
/// x 56.
Graph build_ray(const GraphSpec& spec) {
  GraphBuilder net(spec, ActivationKind::relu);
  NodeId x = net.input();
  const auto convolve = [&](int number, const Convolution& attributes) {
    x = net.convolution(fmt::format("conv{}", number), x, attributes);
    x = net.activation(fmt::format("relu{}", number), x);
  };
  const auto normalise = [&](int number) {
    x = net.apply(fmt::format("pool{}", number), x, pool);
    x = net.apply(fmt::format("lrn{}", number), x, norm_ray);
  };
  convolve(1, {.out = 96, .kernel = 11, .stride = 4, .pad = 4, .bias = true});
  normalise(1);
  convolve(2, layer(256, 5));
  normalise(2);
  convolve(3, layer(384, 3));
  convolve(4, layer(384, 3));
  convolve(5, layer(256, 3));
  normalise(5);
  x = net.apply("flatten", x, Flatten{});
  constexpr Activation dense{.kind = ActivationKind::tanh};
  for (const int number : {1, 2}) {
    x = net.apply(fmt::format("tanh{}", number), net.linear(fmt::format("fc{}", number), x, 4096), dense);
    x = net.apply(fmt::format("drop{}", number), x, Dropout{dropout_of(spec, usual_dropout)});
  }
  return net.classify("fc3", x, "alexnet ray");
}

/// Krizhevsky 2014 ("One weird trick", arXiv 1404.5997) as torchvision has it: no normalisation, narrower convolutions.
Graph build_owt(const GraphSpec& spec) {
  GraphBuilder net(spec, ActivationKind::relu);
  NodeId x = net.input();
  int next = 0;  // of torchvision's sequence of modules
  const auto name = [&] { return fmt::format("features.{}", next++); };
  const auto convolve = [&](const Convolution& attributes) {
    x = net.convolution(name(), x, attributes);
    x = net.activation(name(), x);
  };
  convolve({.out = 64, .kernel = 11, .stride = 4, .pad = 2, .bias = true});
  x = net.apply(name(), x, pool);
  convolve(layer(192, 5));
  x = net.apply(name(), x, pool);
  convolve(layer(384, 3));
  convolve(layer(256, 3));
  convolve(layer(256, 3));
  x = net.apply(name(), x, pool);
  x = net.apply("flatten", x, Flatten{});
  for (const int first : {0, 3}) {
    x = net.apply(fmt::format("classifier.{}", first), x, Dropout{dropout_of(spec, usual_dropout)});
    x = net.linear(fmt::format("classifier.{}", first + 1), x, 4096);
    x = net.activation(fmt::format("classifier.{}", first + 2), x);
  }
  return net.classify("classifier.6", x, "alexnet owt");
}

/// Krizhevsky et al. 2012 and two later forms.
Graph build_alexnet(const GraphSpec& spec) {
  const std::string variant = spec.option("variant");
  if (variant.empty() || variant == "2012") return build_2012(spec);
  if (variant == "ray") return build_ray(spec);
  if (variant == "owt") return build_owt(spec);
  fail(Exit::usage, "alexnet has no variant '{}'; use 2012, ray or owt", variant);
}

}  // namespace

Family alexnet_family() {
  return {
      .names = {"alexnet"},
      .help =
          {"alexnet: variants 2012 (local response norm, two groups), ray (tanh in the dense layers), owt (torchvision's)"},
      .options =
          {{.name = "variant", .words = {"2012", "ray", "owt"}, .help = "alexnet; default: 2012", .lacks = "variant"},
           dropout_option()},
      .has = [](const std::string& model) { return model == "alexnet"; },
      .usual_input = [](const GraphSpec&) { return imagenet_input; },
      .build = build_alexnet};
}

}  // namespace convoy
