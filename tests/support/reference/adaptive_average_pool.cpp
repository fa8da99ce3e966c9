// SPDX-License-Identifier: Apache-2.0
#include "support/reference/operations.hpp"

namespace convoy::reference {
namespace {

struct Window {
  Index top, bottom, left, right;
  double count() const { return static_cast<double>((bottom - top) * (right - left)); }
};

/// PyTorch: from floor(i * side / size) to ceil((i + 1) * side / size).
Window window_at(const AdaptiveAveragePool& spec, const Tensor& x, Index p, Index q) {
  const Index size = spec.size;
  return {p * x.h / size, ((p + 1) * x.h + size - 1) / size, q * x.w / size, ((q + 1) * x.w + size - 1) / size};
}

/// Calls body(i, c, p, q, window) for each output.
template <class Body>
void for_each_window(const AdaptiveAveragePool& spec, const Tensor& x, const Body& body) {
  for (Index i = 0; i < x.n; ++i)
    for (Index c = 0; c < x.c; ++c)
      for (Index p = 0; p < spec.size; ++p)
        for (Index q = 0; q < spec.size; ++q) body(i, c, p, q, window_at(spec, x, p, q));
}

}  // namespace

Output forward(const AdaptiveAveragePool& spec, const Operands& operands) {
  const Tensor& x = *operands.x.at(0);
  Output output{Tensor(x.n, x.c, spec.size, spec.size), {}, {}};
  for_each_window(spec, x, [&](Index i, Index c, Index p, Index q, const Window& window) {
    double sum = 0;
    for (Index h = window.top; h < window.bottom; ++h)
      for (Index w = window.left; w < window.right; ++w) sum += x.at(i, c, h, w);
    output.y.at(i, c, p, q) = sum / window.count();
  });
  return output;
}

Gradient backward(const AdaptiveAveragePool& spec, const Operands& operands, const Output&, const Tensor& dy) {
  const Tensor& x = *operands.x.at(0);
  Gradient gradient{{Tensor::like(x)}, {}};
  for_each_window(spec, x, [&](Index i, Index c, Index p, Index q, const Window& window) {
    for (Index h = window.top; h < window.bottom; ++h)
      for (Index w = window.left; w < window.right; ++w)
        gradient.dx[0].at(i, c, h, w) += dy.at(i, c, p, q) / window.count();
  });
  return gradient;
}

}  // namespace convoy::reference
