// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "support/reference/operations.hpp"

namespace convoy::reference {

Output forward(const Concatenation&, const Operands& operands) {
  const Tensor& first = *operands.x.at(0);
  Index channels = 0;
  for (const Tensor* x : operands.x) channels += x->c;
  Output output{Tensor(first.n, channels, first.h, first.w), {}, {}};
  for (Index i = 0; i < first.n; ++i) {
    Index at = 0;
    for (const Tensor* x : operands.x) {
      std::copy_n(x->line(i, 0, 0), x->c * x->h * x->w, output.y.line(i, at, 0));
      at += x->c;
    }
  }
  return output;
}

Gradient backward(const Concatenation&, const Operands& operands, const Output&, const Tensor& dy) {
  Gradient gradient;
  Index at = 0;
  for (const Tensor* x : operands.x) {
    Tensor& dx = gradient.dx.emplace_back(Tensor::like(*x));
    for (Index i = 0; i < dx.n; ++i) std::copy_n(dy.line(i, at, 0), dx.c * dx.h * dx.w, dx.line(i, 0, 0));
    at += dx.c;
  }
  return gradient;
}

}  // namespace convoy::reference
