// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "support/reference/operations.hpp"

namespace convoy::reference {
Output forward(const BatchNorm& spec, const Operands& operands) {
  const Tensor& x = *operands.x.at(0);
  Output output{Tensor::like(x), Values(static_cast<std::size_t>(x.c), 0.0),
                Values(static_cast<std::size_t>(x.c), 0.0)};
  const Index pixels = x.h * x.w;
  const double count = static_cast<double>(x.n * pixels);
  for (Index c = 0; c < x.c; ++c) {
    const auto k = static_cast<std::size_t>(c);
    double &mean = output.mean[k], &variance = output.variance[k];
    for (Index i = 0; i < x.n; ++i) {
      for (Index j = 0; j < pixels; ++j) mean += x.line(i, c, 0)[j] / count;
    }
    for (Index i = 0; i < x.n; ++i) {
      for (Index j = 0; j < pixels; ++j) variance += (x.line(i, c, 0)[j] - mean) * (x.line(i, c, 0)[j] - mean) / count;
    }
    const bool running = operands.running_mean != nullptr;
    const double centre = running ? operands.running_mean->at(k) : mean;
    const double deviation = std::sqrt((running ? operands.running_variance->at(k) : variance) + spec.epsilon);
    for (Index i = 0; i < x.n; ++i) {
      for (Index j = 0; j < pixels; ++j) {
        output.y.line(i, c, 0)[j] = operands.parameters.at(0)->at(k) * (x.line(i, c, 0)[j] - centre) / deviation +
                                    operands.parameters.at(1)->at(k);
      }
    }
  }
  return output;
}

/// dshift = sum dy, dscale = sum dy * xhat, dx = scale / deviation * (dy - mean(dy) - xhat * mean(dy * xhat)); with
/// running statistics dx = scale / deviation * dy.
Gradient backward(const BatchNorm& spec, const Operands& operands, const Output& output, const Tensor& dy) {
  const Tensor& x = *operands.x.at(0);
  const auto channels = static_cast<std::size_t>(x.c);
  Gradient gradient{{Tensor::like(x)}, {Values(channels, 0.0), Values(channels, 0.0)}};
  const Index pixels = x.h * x.w;
  const double count = static_cast<double>(x.n * pixels);
  for (Index c = 0; c < x.c; ++c) {
    const auto k = static_cast<std::size_t>(c);
    const bool running = operands.running_mean != nullptr;
    const double centre = running ? operands.running_mean->at(k) : output.mean[k];
    const double deviation =
        std::sqrt((running ? operands.running_variance->at(k) : output.variance[k]) + spec.epsilon);
    double &dscale = gradient.dparameters[0][k], &dshift = gradient.dparameters[1][k];
    const auto normalised = [&](Index i, Index j) { return (x.line(i, c, 0)[j] - centre) / deviation; };
    for (Index i = 0; i < x.n; ++i) {
      for (Index j = 0; j < pixels; ++j) {
        dshift += dy.line(i, c, 0)[j];
        dscale += dy.line(i, c, 0)[j] * normalised(i, j);
      }
    }
    for (Index i = 0; i < x.n; ++i) {
      for (Index j = 0; j < pixels; ++j) {
        const double through = running ? 0.0 : (dshift + normalised(i, j) * dscale) / count;
        gradient.dx[0].line(i, c, 0)[j] =
            operands.parameters.at(0)->at(k) / deviation * (dy.line(i, c, 0)[j] - through);
      }
    }
  }
  return gradient;
}

}  // namespace convoy::reference
