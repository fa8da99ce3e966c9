// SPDX-License-Identifier: Apache-2.0
#include "network/operations/dropout.hpp"

#include <fmt/core.h>

namespace convoy {

Shape Dropout::shape(const NodeInputs& inputs) const { return inputs.first(); }
Contract Dropout::contract() const { return {.possible = rate >= 0 && rate < 1}; }
std::string Dropout::text() const { return fmt::format("dropout {}", rate); }

OnnxOperators Dropout::onnx(const NodeInputs&) const { return {}; }

}  // namespace convoy
