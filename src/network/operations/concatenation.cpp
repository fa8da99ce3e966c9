// SPDX-License-Identifier: Apache-2.0
#include "network/operations/concatenation.hpp"

#include "core/errors.hpp"

namespace convoy {

Shape Concatenation::shape(const NodeInputs& inputs) const {
  Shape joined = inputs.first();
  joined.c = 0;
  for (const Shape& each : inputs.shapes) {
    if (each.h != joined.h || each.w != joined.w)
      fail(Exit::usage, "node '{}' joins channels of {} x {} and of {} x {} (graph built wrongly)", inputs.node,
           joined.h, joined.w, each.h, each.w);
    joined.c += each.c;
  }
  return joined;
}

Contract Concatenation::contract() const { return {.inputs = 2, .more_inputs = true}; }
std::string Concatenation::text() const { return "concatenation"; }

}  // namespace convoy
