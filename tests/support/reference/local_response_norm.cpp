// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "support/reference/operations.hpp"

namespace convoy::reference {
namespace {

/// k + alpha / size * sum of squares over the window of channel c.
double base_at(const LocalResponseNorm& spec, const Tensor& x, Index i, Index c, Index h, Index w) {
  double sum = 0;
  for (Index j = c - spec.size / 2; j < c - spec.size / 2 + spec.size; ++j) {
    if (j >= 0 && j < x.c) sum += x.at(i, j, h, w) * x.at(i, j, h, w);
  }
  return double{spec.k} + double{spec.alpha} / spec.size * sum;
}

template <class Visit>
void for_each_element(const Tensor& x, const Visit& visit) {
  for (Index i = 0; i < x.n; ++i) {
    for (Index c = 0; c < x.c; ++c) {
      for (Index h = 0; h < x.h; ++h) {
        for (Index w = 0; w < x.w; ++w) visit(i, c, h, w);
      }
    }
  }
}

}  // namespace

Output forward(const LocalResponseNorm& spec, const Operands& operands) {
  const Tensor& x = *operands.x.at(0);
  Output output{Tensor::like(x), {}, {}};
  for_each_element(x, [&](Index i, Index c, Index h, Index w) {
    output.y.at(i, c, h, w) = x.at(i, c, h, w) * std::pow(base_at(spec, x, i, c, h, w), -double{spec.beta});
  });
  return output;
}

/// Every y[c] hands its gradient to all x of its window, through the base, and to its own x directly.
Gradient backward(const LocalResponseNorm& spec, const Operands& operands, const Output&, const Tensor& dy) {
  const Tensor& x = *operands.x.at(0);
  Gradient gradient{{Tensor::like(x)}, {}};
  Tensor& dx = gradient.dx[0];
  const double beta = spec.beta, share = double{spec.alpha} / spec.size;
  for_each_element(x, [&](Index i, Index c, Index h, Index w) {
    const double base = base_at(spec, x, i, c, h, w), d = dy.at(i, c, h, w);
    dx.at(i, c, h, w) += d * std::pow(base, -beta);
    for (Index j = c - spec.size / 2; j < c - spec.size / 2 + spec.size; ++j) {
      if (j < 0 || j >= x.c) continue;
      dx.at(i, j, h, w) -= d * x.at(i, c, h, w) * beta * std::pow(base, -beta - 1) * share * 2 * x.at(i, j, h, w);
    }
  });
  return gradient;
}

}  // namespace convoy::reference
