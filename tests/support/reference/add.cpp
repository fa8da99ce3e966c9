// SPDX-License-Identifier: Apache-2.0
#include "support/reference/operations.hpp"

namespace convoy::reference {
Output forward(const Add&, const Operands& operands) {
  Output output{*operands.x.at(0), {}, {}};
  for (std::size_t i = 0; i < output.y.values.size(); ++i) output.y.values[i] += operands.x.at(1)->values.at(i);
  return output;
}

Gradient backward(const Add&, const Operands&, const Output&, const Tensor& dy) { return {{dy, dy}, {}}; }

}  // namespace convoy::reference
