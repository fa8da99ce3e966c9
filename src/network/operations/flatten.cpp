// SPDX-License-Identifier: Apache-2.0
#include "network/operations/flatten.hpp"

namespace convoy {

Shape Flatten::shape(const NodeInputs& inputs) const { return {inputs.first().count()}; }
Contract Flatten::contract() const { return {}; }
std::string Flatten::text() const { return "flatten"; }

OnnxOperators Flatten::onnx(const NodeInputs&) const { return {{"Flatten"}}; }

}  // namespace convoy
