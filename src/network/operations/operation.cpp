// SPDX-License-Identifier: Apache-2.0
#include "network/operations/operation.hpp"

#include "core/errors.hpp"

namespace convoy {

void NodeInputs::require_channels(Index wanted) const {
  if (first().c != wanted) fail(Exit::usage, "node '{}' takes {} channels but gets {}", node, wanted, first().c);
}

Shape NodeInputs::slide(Index channels, const Slide& down, const Slide& across, bool ceil) const {
  const auto positions = [&](Index side, const Slide& window) {
    const auto [kernel, stride, pad] = window;
    const Index room = side + 2 * pad - kernel;
    if (room < 0)
      fail(Exit::usage,
           "images of {} x {} are too small for this network (node '{}' has {} x {} left for a window of {})", image.h,
           image.w, node, first().h, first().w, kernel);
    const Index whole = room / stride + 1;
    return ceil && room % stride != 0 && whole * stride < side + pad ? whole + 1 : whole;
  };
  return {channels, positions(first().h, down), positions(first().w, across)};
}

}  // namespace convoy
