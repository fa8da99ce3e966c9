// SPDX-License-Identifier: Apache-2.0
#include "core/errors.hpp"
#include "network/builder.hpp"
#include "network/models/family.hpp"

namespace convoy {
namespace {

Pool::Mode pooling_of(const GraphSpec& spec) {
  const std::string pooling = spec.option("pooling");
  if (pooling.empty() || pooling == "max") return Pool::Mode::max;
  if (pooling == "average") return Pool::Mode::average;
  fail(Exit::usage, "unknown pooling '{}'; use max or average", pooling);
}

/// LeCun et al. 1998 in the form of the MNIST examples of Caffe and MXNet: 20 and 50 maps of 5x5, each with activation
/// (tanh) and 2x2 pooling (max), 500 hidden values.
Graph build_lenet(const GraphSpec& spec) {
  const Pool pool{.mode = pooling_of(spec), .kernel = 2, .stride = 2};
  GraphBuilder net(spec, ActivationKind::tanh);
  NodeId x = net.input();
  x = net.convolution("conv1", x, {.out = 20, .kernel = 5, .pad = 0, .bias = true});
  x = net.activation("act1", x);
  x = net.apply("pool1", x, pool);
  x = net.convolution("conv2", x, {.out = 50, .kernel = 5, .pad = 0, .bias = true});
  x = net.activation("act2", x);
  x = net.apply("pool2", x, pool);
  x = net.apply("flatten", x, Flatten{});
  x = net.linear("fc1", x, 500);
  x = net.activation("act3", x);
  return net.classify("fc2", x, "lenet");
}

}  // namespace

Family lenet_family() {
  return {.names = {"lenet"},
          .options = {{.name = "pooling",
                       .words = {"max", "average"},
                       .help = "lenet; default: max",
                       .lacks = "choice of pooling"}},
          .has = [](const std::string& model) { return model == "lenet"; },
          .usual_input = [](const GraphSpec&) { return mnist_input; },
          .build = build_lenet};
}

}  // namespace convoy
