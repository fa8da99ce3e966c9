// SPDX-License-Identifier: Apache-2.0
#include "support/reference/operations.hpp"

#include "backend/rules/dropout.hpp"

namespace convoy::reference {
namespace {

Tensor times_factors(const Tensor& x, const Operands& operands) {
  Tensor result = x;
  if (operands.factors == nullptr) return result;
  for (std::size_t i = 0; i < result.values.size(); ++i) result.values[i] *= operands.factors->at(i);
  return result;
}

}  // namespace

Output forward(const Dropout&, const Operands& operands) {
  return {times_factors(*operands.x.at(0), operands), {}, {}};
}

Gradient backward(const Dropout&, const Operands& operands, const Output&, const Tensor& dy) {
  return {{times_factors(dy, operands)}, {}};
}

Tensor dropout_factors(const Dropout& spec, const Tensor& like, const StepParams& step, NodeId node,
                       std::span<const SampleSpec> samples) {
  Tensor factors = Tensor::like(like);
  const std::uint64_t key = dropout_key(step.seed, step.step, node);
  const Index elements = like.c * like.h * like.w;
  for (Index i = 0; i < like.n; ++i) {
    const std::uint64_t sample = dropout_sample_key(key, samples[static_cast<std::size_t>(i)].position);
    for (Index j = 0; j < elements; ++j) {
      const bool kept = DropoutRule::of(spec.rate).factor(sample, j) > 0;
      factors.line(i, 0, 0)[j] = kept ? 1 / (1 - double{spec.rate}) : 0;
    }
  }
  return factors;
}

}  // namespace convoy::reference
