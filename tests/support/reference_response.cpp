// SPDX-License-Identifier: Apache-2.0
#include "support/reference_response.hpp"

#include <cmath>

#include "backend/rules/dropout.hpp"

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

Tensor response_forward(const LocalResponseNorm& spec, const Tensor& x) {
  Tensor y = Tensor::like(x);
  for_each_element(x, [&](Index i, Index c, Index h, Index w) {
    y.at(i, c, h, w) = x.at(i, c, h, w) * std::pow(base_at(spec, x, i, c, h, w), -double{spec.beta});
  });
  return y;
}

/// Every y[c] hands its gradient to all x of its window, through the base, and to its own x directly.
Tensor response_backward(const LocalResponseNorm& spec, const Tensor& x, const Tensor& dy) {
  Tensor dx = Tensor::like(x);
  const double beta = spec.beta, share = double{spec.alpha} / spec.size;
  for_each_element(x, [&](Index i, Index c, Index h, Index w) {
    const double base = base_at(spec, x, i, c, h, w), d = dy.at(i, c, h, w);
    dx.at(i, c, h, w) += d * std::pow(base, -beta);
    for (Index j = c - spec.size / 2; j < c - spec.size / 2 + spec.size; ++j) {
      if (j < 0 || j >= x.c) continue;
      dx.at(i, j, h, w) -= d * x.at(i, c, h, w) * beta * std::pow(base, -beta - 1) * share * 2 * x.at(i, j, h, w);
    }
  });
  return dx;
}

Tensor dropout_factors(const Dropout& spec, const Tensor& like, const StepParams& step, NodeId node,
                       std::span<const SampleSpec> samples) {
  Tensor factors = Tensor::like(like);
  const std::uint64_t key = dropout_key(step.seed, step.step, node);
  for_each_element(factors, [&](Index i, Index c, Index h, Index w) {
    const std::uint64_t sample = dropout_sample_key(key, samples[static_cast<std::size_t>(i)].position);
    const float factor = DropoutRule::of(spec.rate).factor(sample, (c * like.h + h) * like.w + w);
    factors.at(i, c, h, w) = factor > 0 ? 1 / (1 - double{spec.rate}) : 0;
  });
  return factors;
}

}  // namespace convoy::reference
