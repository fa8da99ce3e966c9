// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "support/reference/operations.hpp"

namespace convoy::reference {
namespace {

double normal_distribution(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

double activate(const Activation& spec, double x) {
  switch (spec.kind) {
    case ActivationKind::relu:
      return x > 0 ? x : 0;
    case ActivationKind::leaky_relu:
      return x > 0 ? x : double{spec.slope} * x;
    case ActivationKind::tanh:
      return std::tanh(x);
    case ActivationKind::gelu:
      return x * normal_distribution(x);
    case ActivationKind::silu:
      return x / (1 + std::exp(-x));
    case ActivationKind::relu6:
      return std::min(std::max(x, 0.0), 6.0);
    case ActivationKind::hard_swish:
      return x * std::min(std::max(x + 3, 0.0), 6.0) / 6;
    case ActivationKind::scale:
      return double{spec.slope} * x;
    case ActivationKind::identity:
      return x;
  }
  throw std::logic_error("unknown activation");
}

double slope_at(const Activation& spec, double x) {
  switch (spec.kind) {
    case ActivationKind::relu:
      return x > 0 ? 1 : 0;
    case ActivationKind::leaky_relu:
      return x > 0 ? 1 : double{spec.slope};
    case ActivationKind::tanh:
      return 1 - std::tanh(x) * std::tanh(x);
    case ActivationKind::gelu:
      return normal_distribution(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
    case ActivationKind::silu: {
      const double s = 1 / (1 + std::exp(-x));
      return s * (1 + x * (1 - s));
    }
    case ActivationKind::relu6:
      return x > 0 && x < 6 ? 1 : 0;
    case ActivationKind::hard_swish:
      return x >= 3 ? 1 : x > -3 ? x / 3 + 0.5 : 0;
    case ActivationKind::scale:
      return double{spec.slope};
    case ActivationKind::identity:
      return 1;
  }
  throw std::logic_error("unknown activation");
}

}  // namespace

Output forward(const Activation& spec, const Operands& operands) {
  Output output{*operands.x.at(0), {}, {}};
  for (double& v : output.y.values) v = activate(spec, v);
  return output;
}

Gradient backward(const Activation& spec, const Operands& operands, const Output&, const Tensor& dy) {
  Gradient gradient{{dy}, {}};
  for (std::size_t i = 0; i < dy.values.size(); ++i)
    gradient.dx[0].values[i] *= slope_at(spec, operands.x.at(0)->values[i]);
  return gradient;
}

}  // namespace convoy::reference
