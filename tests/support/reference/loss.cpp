// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "support/reference/operations.hpp"

namespace convoy::reference {
namespace {

/// log softmax of one row.
Values log_softmax(const Tensor& logits, Index i) {
  Values z(logits.line(i, 0, 0), logits.line(i, 0, 0) + logits.c);
  const double highest = *std::max_element(z.begin(), z.end());
  double sum = 0;
  for (const double v : z) sum += std::exp(v - highest);
  for (double& v : z) v -= highest + std::log(sum);
  return z;
}

/// The distribution that a sample's labels and the smoothing ask for, times the weight of each class.
Values target_of(const Loss& loss, const SampleSpec& sample, Index classes, std::span<const float> class_weights) {
  const double smoothing = loss.label_smoothing;
  Values t(static_cast<std::size_t>(classes), smoothing / static_cast<double>(classes));
  t[static_cast<std::size_t>(sample.a)] += (1 - smoothing) * sample.lambda;
  t[static_cast<std::size_t>(sample.b)] += (1 - smoothing) * (1 - double{sample.lambda});
  for (std::size_t k = 0; k < class_weights.size(); ++k) t[k] *= class_weights[k];
  return t;
}

}  // namespace

Values loss_forward(const Loss& loss, const Tensor& logits, std::span<const SampleSpec> samples,
                    std::span<const float> class_weights) {
  Values result(static_cast<std::size_t>(logits.n), 0.0);
  for (Index i = 0; i < logits.n; ++i) {
    const Values z = log_softmax(logits, i),
                 t = target_of(loss, samples[static_cast<std::size_t>(i)], logits.c, class_weights);
    for (std::size_t k = 0; k < z.size(); ++k) result[static_cast<std::size_t>(i)] -= loss.weight * t[k] * z[k];
  }
  return result;
}

Tensor loss_backward(const Loss& loss, const Tensor& logits, std::span<const SampleSpec> samples, double scale,
                     std::span<const float> class_weights) {
  Tensor dlogits = Tensor::like(logits);
  for (Index i = 0; i < logits.n; ++i) {
    const Values z = log_softmax(logits, i),
                 t = target_of(loss, samples[static_cast<std::size_t>(i)], logits.c, class_weights);
    double mass = 0;
    for (const double of_class : t) mass += of_class;
    for (std::size_t k = 0; k < z.size(); ++k)
      dlogits.line(i, 0, 0)[k] = loss.weight * scale * (mass * std::exp(z[k]) - t[k]);
  }
  return dlogits;
}

}  // namespace convoy::reference
