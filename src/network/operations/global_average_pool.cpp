// SPDX-License-Identifier: Apache-2.0
#include "network/operations/global_average_pool.hpp"

namespace convoy {

Shape GlobalAveragePool::shape(const NodeInputs& inputs) const { return {inputs.first().c}; }
Contract GlobalAveragePool::contract() const { return {}; }
std::string GlobalAveragePool::text() const { return "global average pool"; }

OnnxOperators GlobalAveragePool::onnx(const NodeInputs&) const { return {{"GlobalAveragePool"}}; }

}  // namespace convoy
