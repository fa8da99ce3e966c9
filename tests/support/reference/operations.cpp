// SPDX-License-Identifier: Apache-2.0
#include "support/reference/operations.hpp"

#include <stdexcept>

namespace convoy::reference {
namespace {

Output forward(const Input&, const Operands&) { throw std::logic_error("the input is not applied"); }
Output forward(const Loss&, const Operands&) { throw std::logic_error("the loss is not applied like other nodes"); }
Gradient backward(const Input&, const Operands&, const Output&, const Tensor&) {
  throw std::logic_error("the input has no gradient");
}
Gradient backward(const Loss&, const Operands&, const Output&, const Tensor&) {
  throw std::logic_error("the loss is not applied like other nodes");
}

}  // namespace

Output forward(const Node& node, const Operands& operands) {
  return std::visit([&](const auto& attributes) { return forward(attributes, operands); }, node.attributes);
}

Gradient backward(const Node& node, const Operands& operands, const Output& output, const Tensor& dy) {
  return std::visit([&](const auto& attributes) { return backward(attributes, operands, output, dy); },
                    node.attributes);
}

}  // namespace convoy::reference
