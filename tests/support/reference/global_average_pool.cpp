// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "support/reference/operations.hpp"

namespace convoy::reference {
Output forward(const GlobalAveragePool&, const Operands& operands) {
  const Tensor& x = *operands.x.at(0);
  Output output{Tensor(x.n, x.c), {}, {}};
  for (Index i = 0; i < x.n; ++i) {
    for (Index c = 0; c < x.c; ++c) {
      for (Index j = 0; j < x.h * x.w; ++j) output.y.at(i, c) += x.line(i, c, 0)[j] / static_cast<double>(x.h * x.w);
    }
  }
  return output;
}

Gradient backward(const GlobalAveragePool&, const Operands& operands, const Output&, const Tensor& dy) {
  const Tensor& x = *operands.x.at(0);
  Gradient gradient{{Tensor::like(x)}, {}};
  for (Index i = 0; i < x.n; ++i) {
    for (Index c = 0; c < x.c; ++c) {
      std::fill_n(gradient.dx[0].line(i, c, 0), x.h * x.w, dy.at(i, c) / static_cast<double>(x.h * x.w));
    }
  }
  return gradient;
}

}  // namespace convoy::reference
