// SPDX-License-Identifier: Apache-2.0
#include "network/operations/input.hpp"

#include <fmt/core.h>

namespace convoy {

Shape Input::shape(const NodeInputs& inputs) const { return {channels, inputs.image.h, inputs.image.w}; }
Contract Input::contract() const { return {.inputs = 0, .possible = channels > 0}; }
std::string Input::text() const { return fmt::format("input {} channels", channels); }

OnnxOperators Input::onnx(const NodeInputs&) const { return {}; }

}  // namespace convoy
