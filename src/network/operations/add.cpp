// SPDX-License-Identifier: Apache-2.0
#include "network/operations/add.hpp"

#include "core/errors.hpp"
#include "network/operations/input_shape.hpp"

namespace convoy {

Shape Add::shape(const NodeInputs& inputs) const {
  const Shape &a = inputs.shapes[0], &b = inputs.shapes[1];
  if (a != b)
    fail(Exit::usage, "node '{}' adds {} and {} (c h w); give them the same shape", inputs.node,
         input_shape_text(inputs, a), input_shape_text(inputs, b));
  return a;
}

Contract Add::contract() const { return {.inputs = 2}; }
std::string Add::text() const { return "add"; }

OnnxOperators Add::onnx(const NodeInputs&) const { return {{"Add", {"x", "x1"}}}; }

std::vector<OnnxOperators> Add::onnx_forms() { return {{{"Add", {"x", "x1"}}}, {{"Sum", {"x", "x1"}}}}; }

std::optional<OnnxFound<Add>> Add::from_onnx(const OnnxSite&) { return OnnxFound<Add>{}; }

}  // namespace convoy
