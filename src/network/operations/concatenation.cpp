// SPDX-License-Identifier: Apache-2.0
#include "network/operations/concatenation.hpp"

#include <fmt/core.h>

#include "core/errors.hpp"
#include "network/operations/input_shape.hpp"

namespace convoy {

Shape Concatenation::shape(const NodeInputs& inputs) const {
  Shape joined = inputs.first();
  joined.c = 0;
  for (const Shape& each : inputs.shapes) {
    if (each.h != joined.h || each.w != joined.w)
      fail(Exit::usage, "node '{}' joins {} and {} (c h w); give them the same height and width", inputs.node,
           input_shape_text(inputs, inputs.first()), input_shape_text(inputs, each));
    joined.c += each.c;
  }
  return joined;
}

Contract Concatenation::contract() const { return {.inputs = 2, .more_inputs = true}; }
std::string Concatenation::text() const { return "concatenation"; }

OnnxOperators Concatenation::onnx(const NodeInputs& inputs) const {
  OnnxOperator join{"Concat", {"x"}, {{"axis", Index{1}}}};
  for (std::size_t i = 1; i < inputs.shapes.size(); ++i) join.reads.emplace_back(fmt::format("x{}", i));
  return {join};
}

std::vector<OnnxOperators> Concatenation::onnx_forms() { return {{{"Concat"}}}; }

std::optional<OnnxFound<Concatenation>> Concatenation::from_onnx(const OnnxSite& site) {
  const Index axis = site.whole("axis", 1);
  if (axis != 1 && axis != -3) site.refuse(fmt::format("joins along dimension {}", axis));
  return OnnxFound<Concatenation>{};
}

}  // namespace convoy
