// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/operations/loss.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "backend/cpu/operation.hpp"
#include "backend/cpu/step_builder.hpp"
#include "backend/rules/cross_entropy.hpp"
#include "core/errors.hpp"

namespace convoy::cpu {
namespace {

/// log(sum exp z). Not finite where any logit is NaN or +inf.
double log_sum_exp(const float* z, Index classes) {
  double highest = z[0], sum = 0;
  for (Index k = 1; k < classes; ++k) highest = std::max<double>(highest, z[k]);
  for (Index k = 0; k < classes; ++k) sum += std::exp(z[k] - highest);
  return highest + std::log(sum);
}

/// Classes that rank before the label: 0 for a top-1 hit.
Index rank_of(const float* z, Index classes, std::int32_t label) {
  Index before = 0;
  for (std::int32_t k = 0; k < classes; ++k) before += ranks_before(z[k], k, z[label], label) ? 1 : 0;
  return before;
}

class LossStep final : public Step {
 public:
  LossStep(const LossSpec& spec, std::vector<float> class_weights, Operand logits, Operand gradient, Counters& counters)
      : spec_(spec),
        class_weights_(std::move(class_weights)),
        logits_(logits),
        gradient_(gradient),
        counters_(counters) {}

  bool run(const Memory& memory, const Tile& tile) override {
    LossSpec spec = spec_;
    spec.scale = memory.scale;
    spec.class_weights = class_weights_;
    softmax_cross_entropy(spec, memory.samples, memory.valid, reinterpret_cast<const float*>(logits_.at(memory, tile)),
                          memory.losses, reinterpret_cast<float*>(gradient_.at(memory, tile)), counters_);
    return true;
  }

 private:
  const LossSpec spec_;
  const std::vector<float> class_weights_;
  const Operand logits_, gradient_;  ///< no gradient unless training
  Counters& counters_;
};

class LossOperation final : public Operation {
 public:
  void reads(std::span<TensorKind> sources) const override { sources[0] = TensorKind::features; }
  TensorKind makes(std::span<const TensorKind>) const override { return TensorKind::features; }
  OperationTraits traits(const Node&) const override { return {.whole_batch = true}; }

  void compile(const Instruction& i, StepBuilder& steps) const override {
    const ProgramParts& parts = steps.parts();
    const int logits = steps.value(i.value).terms[0].value;
    const auto& loss = std::get<Loss>(steps.node(i.value).attributes);
    const auto& values = parts.lowering.values;
    const auto begins = std::find_if(values.begin(), values.end(),
                                     [](const Value& value) { return value.kind == ValueKind::loss && value.used; });
    steps.add<LossStep>(LossSpec{.classes = steps.layout(logits).channels,
                                 .smoothing = loss.label_smoothing,
                                 .weight = loss.weight,
                                 .adds = &*begins != &steps.value(i.value),
                                 .counts = &values.back() == &steps.value(i.value),
                                 .topk = parts.spec.topk},
                        parts.spec.mode == Mode::train ? parts.spec.class_weights : std::vector<float>(),
                        steps.operand(i[Slot::source], logits), steps.operand(i.out, logits), parts.counters);
  }
};

}  // namespace

template <>
const Operation& operation_for<Loss>() {
  static const LossOperation operation;
  return operation;
}

void softmax_cross_entropy(const LossSpec& spec, std::span<const SampleSpec> samples, Index valid, const float* logits,
                           float* loss_per_sample, float* dlogits, Counters& counters) {
  const auto n = static_cast<Index>(samples.size());
  const Index classes = spec.classes;
  require(valid >= 0 && valid <= n, "more valid samples than samples");
  const double scale = static_cast<double>(spec.scale) * static_cast<double>(spec.weight);
  Index top1 = 0, topk = 0;
#pragma omp parallel for schedule(static) reduction(+ : top1, topk)
  for (Index i = 0; i < n; ++i) {
    const SampleSpec& sample = samples[static_cast<std::size_t>(i)];
    const float* const z = logits + i * classes;
    float* const dz = dlogits != nullptr ? dlogits + i * classes : nullptr;
    if (i >= valid) {
      loss_per_sample[i] = 0;
      if (dz != nullptr) std::fill_n(dz, classes, 0.0F);
      continue;
    }
    const float* const weights = spec.class_weights.empty() ? nullptr : spec.class_weights.data();
    const SoftTarget target{sample.a, sample.b, sample.lambda, spec.smoothing, static_cast<double>(classes), weights};
    const double log_sum = log_sum_exp(z, classes);
    double sum = 0, weight_sum = 0;
    for (std::int32_t k = 0; k < classes; ++k) {
      sum += target.weight(k) * z[k];
      weight_sum += target.weight(k);
    }
    const double mass = target.mass(weight_sum);
    const double own = spec.weight * target.loss(log_sum, mass, z[sample.a], z[sample.b], sum);
    loss_per_sample[i] = static_cast<float>(spec.adds ? loss_per_sample[i] + own : own);
    if (dz != nullptr) {
      for (std::int32_t k = 0; k < classes; ++k) {
        dz[k] = static_cast<float>(scale * (mass * std::exp(z[k] - log_sum) - target(k)));
      }
    }
    if (!spec.counts) continue;
    const Index before = rank_of(z, classes, sample.a);
    top1 += before < 1 ? 1 : 0;
    topk += before < spec.topk ? 1 : 0;
  }
  if (!spec.counts) return;
  for (Index i = 0; i < valid; ++i) counters.sums[Counter::loss] += loss_per_sample[i];
  counters.sums[Counter::top1] += static_cast<double>(top1);
  counters.sums[Counter::topk] += static_cast<double>(topk);
  counters.samples += valid;
}

}  // namespace convoy::cpu
