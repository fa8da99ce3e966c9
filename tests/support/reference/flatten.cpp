// SPDX-License-Identifier: Apache-2.0
#include "support/reference/operations.hpp"

namespace convoy::reference {
Output forward(const Flatten&, const Operands& operands) {
  const Tensor& x = *operands.x.at(0);
  Output output{Tensor(x.n, x.c * x.h * x.w), {}, {}};
  output.y.values = x.values;
  return output;
}

Gradient backward(const Flatten&, const Operands& operands, const Output&, const Tensor& dy) {
  Gradient gradient{{Tensor::like(*operands.x.at(0))}, {}};
  gradient.dx[0].values = dy.values;
  return gradient;
}

}  // namespace convoy::reference
