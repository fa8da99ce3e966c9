// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "support/reference/operations.hpp"

namespace convoy::reference {
namespace {

/// The part of a pooling window that lies inside of the image.
struct Window {
  Index top, bottom, left, right;
  Index count() const { return (bottom - top) * (right - left); }
};
Window window_at(const Pool& spec, const Tensor& x, Index p, Index q) {
  const Index top = p * spec.stride - spec.pad, left = q * spec.stride - spec.pad;
  return {std::max<Index>(top, 0), std::min<Index>(top + spec.kernel, x.h), std::max<Index>(left, 0),
          std::min<Index>(left + spec.kernel, x.w)};
}
double divisor(const Pool& spec, const Window& window) {
  return static_cast<double>(spec.count_padding ? Index{spec.kernel} * spec.kernel : window.count());
}

/// The first of the largest elements, in the order of rows.
const double* largest(const Tensor& x, Index i, Index c, const Window& window) {
  const double* best = x.line(i, c, window.top) + window.left;
  for (Index h = window.top; h < window.bottom; ++h) {
    for (Index w = window.left; w < window.right; ++w) {
      if (x.at(i, c, h, w) > *best) best = x.line(i, c, h) + w;
    }
  }
  return best;
}

/// Calls body(i, c, p, q, window) for each output.
template <class Body>
void for_each_window(const Pool& spec, const Tensor& x, const Tensor& y, const Body& body) {
  for (Index i = 0; i < y.n; ++i) {
    for (Index c = 0; c < y.c; ++c) {
      for (Index p = 0; p < y.h; ++p) {
        for (Index q = 0; q < y.w; ++q) body(i, c, p, q, window_at(spec, x, p, q));
      }
    }
  }
}

}  // namespace

Index pooled_size(const Pool& spec, Index side) {
  Index count = 0;
  // A window counts if it ends inside of the padded image; with ceil, if it begins before the padding at the end.
  while (count * spec.stride + spec.kernel <= side + 2 * spec.pad ||
         (spec.ceil && count > 0 && (count - 1) * spec.stride + spec.kernel < side + 2 * spec.pad &&
          count * spec.stride < side + spec.pad))
    ++count;
  return count;
}

Output forward(const Pool& spec, const Operands& operands) {
  const Tensor& x = *operands.x.at(0);
  Output output{Tensor(x.n, x.c, pooled_size(spec, x.h), pooled_size(spec, x.w)), {}, {}};
  for_each_window(spec, x, output.y, [&](Index i, Index c, Index p, Index q, const Window& window) {
    if (spec.mode == Pool::Mode::max) {
      output.y.at(i, c, p, q) = *largest(x, i, c, window);
      return;
    }
    double sum = 0;
    for (Index h = window.top; h < window.bottom; ++h) {
      for (Index w = window.left; w < window.right; ++w) sum += x.at(i, c, h, w);
    }
    output.y.at(i, c, p, q) = sum / divisor(spec, window);
  });
  return output;
}

Gradient backward(const Pool& spec, const Operands& operands, const Output&, const Tensor& dy) {
  const Tensor& x = *operands.x.at(0);
  Gradient gradient{{Tensor::like(x)}, {}};
  Tensor& dx = gradient.dx[0];
  for_each_window(spec, x, dy, [&](Index i, Index c, Index p, Index q, const Window& window) {
    if (spec.mode == Pool::Mode::max) {
      dx.values[static_cast<std::size_t>(largest(x, i, c, window) - x.values.data())] += dy.at(i, c, p, q);
      return;
    }
    for (Index h = window.top; h < window.bottom; ++h) {
      for (Index w = window.left; w < window.right; ++w) dx.at(i, c, h, w) += dy.at(i, c, p, q) / divisor(spec, window);
    }
  });
  return gradient;
}

}  // namespace convoy::reference
