// SPDX-License-Identifier: Apache-2.0
#include "support/reference/operations.hpp"

namespace convoy::reference {
Output forward(const Linear& spec, const Operands& operands) {
  const Tensor& x = *operands.x.at(0);
  const Values& weight = *operands.parameters.at(0);
  Output output{Tensor(x.n, spec.out), {}, {}};
  for (Index i = 0; i < x.n; ++i) {
    for (Index k = 0; k < spec.out; ++k) {
      double sum = spec.bias ? operands.parameters.at(1)->at(static_cast<std::size_t>(k)) : 0.0;
      for (Index c = 0; c < spec.in; ++c) sum += weight[static_cast<std::size_t>(k * spec.in + c)] * x.line(i, 0, 0)[c];
      output.y.at(i, k) = sum;
    }
  }
  return output;
}

Gradient backward(const Linear& spec, const Operands& operands, const Output&, const Tensor& dy) {
  const Tensor& x = *operands.x.at(0);
  const Values& weight = *operands.parameters.at(0);
  Gradient gradient{{Tensor::like(x)}, {Values(weight.size(), 0.0)}};
  if (spec.bias) gradient.dparameters.emplace_back(static_cast<std::size_t>(spec.out), 0.0);
  for (Index i = 0; i < x.n; ++i) {
    for (Index k = 0; k < spec.out; ++k) {
      const double d = dy.at(i, k);
      for (Index c = 0; c < spec.in; ++c) {
        const auto at = static_cast<std::size_t>(k * spec.in + c);
        gradient.dparameters[0][at] += d * x.line(i, 0, 0)[c];
        gradient.dx[0].line(i, 0, 0)[c] += d * weight[at];
      }
      if (spec.bias) gradient.dparameters[1][static_cast<std::size_t>(k)] += d;
    }
  }
  return gradient;
}

}  // namespace convoy::reference
