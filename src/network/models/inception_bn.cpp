// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "network/builder.hpp"
#include "network/models/family.hpp"

namespace convoy {
namespace {

/// MXNet's convolutions have a bias before their norm.
NodeId append_unit(GraphBuilder& net, const std::string& name, NodeId x, Convolution attributes) {
  attributes.bias = true;
  x = net.batch_norm("bn_" + name, net.convolution("conv_" + name, x, attributes));
  return net.activation("relu_" + name, x);
}

/// Channels of the branches; narrow = pooled = 0: a module that halves the image and keeps the pooled maps as they are.
struct Module {
  const char* name;
  Index narrow, reduced3, out3, reduced_double, out_double, pooled;
  Pool::Mode mode = Pool::Mode::average;
};

NodeId append_module(GraphBuilder& net, NodeId x, const Module& module) {
  const bool halves = module.narrow == 0;
  const int stride = halves ? 2 : 1;
  const auto unit = [&](const char* part, NodeId from, const Convolution& attributes) {
    return append_unit(net, fmt::format("{}_{}", module.name, part), from, attributes);
  };
  std::vector<NodeId> branches;
  if (!halves) branches.push_back(unit("1x1", x, {.out = module.narrow, .kernel = 1, .pad = 0}));
  NodeId y = unit("3x3_reduce", x, {.out = module.reduced3, .kernel = 1, .pad = 0});
  branches.push_back(unit("3x3", y, {.out = module.out3, .stride = stride}));
  y = unit("double_3x3_reduce", x, {.out = module.reduced_double, .kernel = 1, .pad = 0});
  y = unit("double_3x3_0", y, {.out = module.out_double});
  branches.push_back(unit("double_3x3_1", y, {.out = module.out_double, .stride = stride}));
  const Pool pool{.mode = halves ? Pool::Mode::max : module.mode, .kernel = 3, .stride = stride, .pad = 1};
  y = net.apply(fmt::format("pool_{}", module.name), x, pool);
  branches.push_back(halves ? y : unit("proj", y, {.out = module.pooled, .kernel = 1, .pad = 0}));
  return net.apply(fmt::format("concat_{}", module.name), std::move(branches), Concatenation{});
}

/// Ioffe and Szegedy 2015 (arXiv 1502.03167), as MXNet's symbol inception-bn has it, with its names.
Graph build_inception_bn(const GraphSpec& spec) {
  GraphBuilder net(spec, ActivationKind::relu);
  const Pool pool{.kernel = 3, .stride = 2};
  NodeId x = append_unit(net, "1", net.input(), {.out = 64, .kernel = 7, .stride = 2, .pad = 3});
  x = append_unit(net, "2_red", net.apply("pool_1", x, pool), {.out = 64, .kernel = 1, .pad = 0});
  x = net.apply("pool_2", append_unit(net, "2", x, {.out = 192}), pool);
  x = append_module(net, x, {"3a", 64, 64, 64, 64, 96, 32});
  x = append_module(net, x, {"3b", 64, 64, 96, 64, 96, 64});
  x = append_module(net, x, {"3c", 0, 128, 160, 64, 96, 0});
  x = append_module(net, x, {"4a", 224, 64, 96, 96, 128, 128});
  x = append_module(net, x, {"4b", 192, 96, 128, 96, 128, 128});
  x = append_module(net, x, {"4c", 160, 128, 160, 128, 160, 128});
  x = append_module(net, x, {"4d", 96, 128, 192, 160, 192, 128});
  x = append_module(net, x, {"4e", 0, 128, 192, 192, 256, 0});
  x = append_module(net, x, {"5a", 352, 192, 320, 160, 224, 128});
  x = append_module(net, x, {"5b", 352, 192, 320, 192, 224, 128, Pool::Mode::max});
  x = net.apply("flatten", net.apply("global_pool", x, GlobalAveragePool{}), Flatten{});
  return net.classify("fc1", x, spec.model);
}

}  // namespace

Family inception_bn_family() {
  return {.names = {"inception_bn"},
          .help = {"inception_bn: GoogLeNet with batch norm and pairs of 3x3, as MXNet has it"},
          .has = [](const std::string& model) { return model == "inception_bn"; },
          .usual_input = [](const GraphSpec&) { return imagenet_input; },
          .build = build_inception_bn};
}

}  // namespace convoy
