// SPDX-License-Identifier: Apache-2.0
#include "core/errors.hpp"
#include "network/builder.hpp"
#include "network/models/families.hpp"

namespace convoy {
namespace {

Pool::Mode pooling_of(const GraphSpec& spec) {
  if (spec.pooling.empty() || spec.pooling == "max") return Pool::Mode::max;
  if (spec.pooling == "average") return Pool::Mode::average;
  fail(Exit::usage, "unknown pooling '{}'; use max or average", spec.pooling);
}

}  // namespace

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

}  // namespace convoy
