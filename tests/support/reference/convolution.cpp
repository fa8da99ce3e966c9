// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "support/reference/operations.hpp"

namespace convoy::reference {
namespace {

/// Output positions whose tap r lies inside of the input: 0 <= position * stride - pad + r < size.
struct Taps {
  Index begin, end;
};
Taps taps_inside(Index size, Index outputs, Index stride, Index pad, Index r) {
  const Index begin = std::max<Index>(0, (pad - r + stride - 1) / stride);
  const Index end = size + pad - r <= 0 ? 0 : std::min(outputs, (size + pad - r - 1) / stride + 1);
  return {std::min(begin, outputs), std::max(begin, end)};
}

/// Calls body(image, k, c, index of w[k, c, r, s], output row p, input row, s) for every line that meets the input.
template <class Body>
void for_each_line(const Convolution& spec, const Tensor& x, const Tensor& y, const Body& body) {
  const Index inputs = spec.in / spec.groups, outputs = spec.out / spec.groups;
  for (Index i = 0; i < x.n; ++i) {
    for (Index k = 0; k < spec.out; ++k) {
      for (Index c = 0; c < inputs; ++c) {
        for (Index r = 0; r < spec.kernel; ++r) {
          const Taps rows = taps_inside(x.h, y.h, spec.stride, spec.pad, r);
          for (Index s = 0; s < spec.s(); ++s) {
            const auto weight = static_cast<std::size_t>(((k * inputs + c) * spec.kernel + r) * spec.s() + s);
            for (Index p = rows.begin; p < rows.end; ++p) {
              body(i, k, k / outputs * inputs + c, weight, p, p * spec.stride - spec.pad + r, s);
            }
          }
        }
      }
    }
  }
}

}  // namespace

Output forward(const Convolution& spec, const Operands& operands) {
  const Tensor& x = *operands.x.at(0);
  const Values& weight = *operands.parameters.at(0);
  const Index height = (x.h + 2 * spec.pad - spec.kernel) / spec.stride + 1,
              width = (x.w + 2 * spec.pad_s() - spec.s()) / spec.stride + 1;
  Output output{Tensor(x.n, spec.out, height, width), {}, {}};
  Tensor& y = output.y;
  if (spec.bias) {
    for (Index i = 0; i < y.n; ++i) {
      for (Index k = 0; k < y.c; ++k) {
        std::fill_n(y.line(i, k, 0), y.h * y.w, operands.parameters.at(1)->at(static_cast<std::size_t>(k)));
      }
    }
  }
  for_each_line(spec, x, y, [&](Index i, Index k, Index c, std::size_t at, Index p, Index row, Index s) {
    const Taps columns = taps_inside(x.w, y.w, spec.stride, spec.pad_s(), s);
    const double* const from = x.line(i, c, row) - spec.pad_s() + s;
    double* const to = y.line(i, k, p);
    for (Index q = columns.begin; q < columns.end; ++q) to[q] += weight[at] * from[q * spec.stride];
  });
  return output;
}

Gradient backward(const Convolution& spec, const Operands& operands, const Output&, const Tensor& dy) {
  const Tensor& x = *operands.x.at(0);
  const Values& weight = *operands.parameters.at(0);
  Gradient gradient{{Tensor::like(x)}, {Values(weight.size(), 0.0)}};
  Tensor& dx = gradient.dx[0];
  Values& dweight = gradient.dparameters[0];
  for_each_line(spec, x, dy, [&](Index i, Index k, Index c, std::size_t at, Index p, Index row, Index s) {
    const Taps columns = taps_inside(x.w, dy.w, spec.stride, spec.pad_s(), s);
    const double* const from = x.line(i, c, row) - spec.pad_s() + s;
    const double* const d = dy.line(i, k, p);
    double* const to = dx.line(i, c, row) - spec.pad_s() + s;
    double sum = 0;
    for (Index q = columns.begin; q < columns.end; ++q) {
      sum += d[q] * from[q * spec.stride];
      to[q * spec.stride] += d[q] * weight[at];
    }
    dweight[at] += sum;
  });
  if (spec.bias) {
    Values dbias(static_cast<std::size_t>(spec.out), 0.0);
    for (Index i = 0; i < dy.n; ++i) {
      for (Index k = 0; k < dy.c; ++k) {
        const double* const d = dy.line(i, k, 0);
        for (Index j = 0; j < dy.h * dy.w; ++j) dbias[static_cast<std::size_t>(k)] += d[j];
      }
    }
    gradient.dparameters.push_back(std::move(dbias));
  }
  return gradient;
}

}  // namespace convoy::reference
