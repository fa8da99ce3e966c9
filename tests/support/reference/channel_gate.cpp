// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "support/reference/operations.hpp"

namespace convoy::reference {
namespace {

double gate_of(const ChannelGate& spec, double s) {
  if (spec.gate == GateKind::hard_sigmoid) return std::min(std::max(s + 3, 0.0), 6.0) / 6;
  return 1 / (1 + std::exp(-s));
}

double slope_of(const ChannelGate& spec, double s) {
  if (spec.gate == GateKind::hard_sigmoid) return s > -3 && s < 3 ? 1.0 / 6 : 0;
  return gate_of(spec, s) * (1 - gate_of(spec, s));
}

}  // namespace

Output forward(const ChannelGate& spec, const Operands& operands) {
  Output output{*operands.x.at(0), {}, {}};
  Tensor& y = output.y;
  for (Index i = 0; i < y.n; ++i)
    for (Index c = 0; c < y.c; ++c)
      for (Index p = 0; p < y.h * y.w; ++p) y.line(i, c, 0)[p] *= gate_of(spec, operands.x.at(1)->at(i, c));
  return output;
}

Gradient backward(const ChannelGate& spec, const Operands& operands, const Output&, const Tensor& dy) {
  const Tensor &x = *operands.x.at(0), &s = *operands.x.at(1);
  Gradient gradient{{dy, Tensor::like(s)}, {}};
  for (Index i = 0; i < x.n; ++i)
    for (Index c = 0; c < x.c; ++c)
      for (Index p = 0; p < x.h * x.w; ++p) {
        gradient.dx[1].at(i, c) += dy.line(i, c, 0)[p] * x.line(i, c, 0)[p] * slope_of(spec, s.at(i, c));
        gradient.dx[0].line(i, c, 0)[p] *= gate_of(spec, s.at(i, c));
      }
  return gradient;
}

}  // namespace convoy::reference
