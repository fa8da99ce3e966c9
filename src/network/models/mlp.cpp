// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "core/errors.hpp"
#include "network/builder.hpp"
#include "network/models/families.hpp"

namespace convoy {

Graph build_mlp(const GraphSpec& spec) {
  GraphBuilder net(spec, ActivationKind::relu);
  NodeId x = net.apply("flatten", net.input(), Flatten{});
  std::size_t layer = 1;
  for (const Index width : spec.hidden) {
    if (width < 1) fail(Exit::usage, "hidden layer {} of mlp has width {} (need at least 1)", layer, width);
    x = net.linear("fc" + std::to_string(layer), x, width);
    x = net.activation("act" + std::to_string(layer), x);
    ++layer;
  }
  return net.classify("fc" + std::to_string(layer), x, "mlp");
}

}  // namespace convoy
