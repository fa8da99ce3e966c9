// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/operations/loss.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "support/formula.hpp"
#include "support/reference/operations.hpp"

namespace convoy::cpu {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

struct Evaluated {
  std::vector<float> loss, dlogits;
  Counters counters;
};
Evaluated evaluate(const LossSpec& spec, const std::vector<SampleSpec>& samples, const std::vector<float>& logits,
                   Index valid = -1) {
  Evaluated result;
  result.loss.assign(samples.size(), nan);
  result.dlogits.assign(logits.size(), nan);
  softmax_cross_entropy(spec, samples, valid < 0 ? static_cast<Index>(samples.size()) : valid, logits.data(),
                        result.loss.data(), result.dlogits.data(), result.counters);
  return result;
}

TEST(Loss, EqualsReference) {
  constexpr Index n = 37, classes = 11;
  const LossSpec spec{.classes = classes, .smoothing = 0.1F, .scale = 1 / 37.0F};
  const std::vector<SampleSpec> samples = formula_samples("labels", n, classes, true);
  const reference::Tensor exact = formula_tensor("logits", {n, classes}, 8);
  const std::vector<float> logits(exact.values.begin(), exact.values.end());
  const Evaluated result = evaluate(spec, samples, logits);
  const reference::Values loss = reference::loss_forward(Loss{spec.smoothing}, exact, samples);
  const reference::Tensor dlogits = reference::loss_backward(Loss{spec.smoothing}, exact, samples, spec.scale);
  double sum = 0;
  for (std::size_t i = 0; i < loss.size(); ++i) {
    EXPECT_NEAR(result.loss[i], loss[i], 0x1p-24 * loss[i]);
    sum += result.loss[i];
  }
  for (std::size_t i = 0; i < logits.size(); ++i) {
    EXPECT_NEAR(result.dlogits[i], dlogits.values[i], 0x1p-23 * std::abs(dlogits.values[i]) + 1e-16);
  }
  EXPECT_EQ(result.counters.sums[Counter::loss], sum) << "in order of samples";
  EXPECT_EQ(result.counters.samples, n);
}

/// An auxiliary head, then the network's own: the losses are added up, and the second counts.
TEST(Loss, HeadsAddUp) {
  constexpr Index n = 5, classes = 4;
  const std::vector<SampleSpec> samples = formula_samples("labels", n, classes, true);
  std::vector<float> loss(n, nan), gradient(n * classes, nan);
  reference::Values expected(n, 0.0);
  Counters counters;
  for (const float weight : {0.25F, 1.0F}) {
    const bool last = weight == 1;
    const reference::Tensor exact = formula_tensor(last ? "last" : "early", {n, classes}, 8);
    const std::vector<float> logits(exact.values.begin(), exact.values.end());
    softmax_cross_entropy({.classes = classes, .scale = 0.5F, .weight = weight, .adds = last, .counts = last}, samples,
                          n - 1, logits.data(), loss.data(), gradient.data(), counters);
    EXPECT_EQ(counters.samples, last ? n - 1 : 0);
    const reference::Values own = reference::loss_forward({.weight = weight}, exact, samples);
    const reference::Tensor dlogits = reference::loss_backward({.weight = weight}, exact, samples, 0.5);
    for (std::size_t i = 0; i < n - 1; ++i) expected[i] += own[i];
    for (std::size_t i = 0; i < (n - 1) * classes; ++i)
      EXPECT_NEAR(gradient[i], dlogits.values[i], 0x1p-23 * std::abs(dlogits.values[i]) + 1e-16);
  }
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_NEAR(loss[i], expected[i], 0x1p-23 * expected[i]) << "0 past the valid ones";
    sum += loss[i];
  }
  EXPECT_EQ(counters.sums[Counter::loss], sum);
}

/// Each number is a sum of a few terms in double, rounded once.
TEST(Loss, WithClassWeightsEqualsReference) {
  constexpr Index n = 37, classes = 11;
  const reference::Values of_classes = formula_values("weights", classes, 0.75, 1);
  const std::vector<float> weights(of_classes.begin(), of_classes.end());
  for (const float smoothing : {0.0F, 0.1F}) {
    const LossSpec spec{.classes = classes, .smoothing = smoothing, .scale = 1 / 37.0F, .class_weights = weights};
    const std::vector<SampleSpec> samples = formula_samples("labels", n, classes, true);
    const reference::Tensor exact = formula_tensor("logits", {n, classes}, 8);
    const Evaluated result = evaluate(spec, samples, {exact.values.begin(), exact.values.end()});
    const reference::Values loss = reference::loss_forward(Loss{smoothing}, exact, samples, weights);
    const reference::Tensor dlogits = reference::loss_backward(Loss{smoothing}, exact, samples, spec.scale, weights);
    for (std::size_t i = 0; i < loss.size(); ++i) EXPECT_NEAR(result.loss[i], loss[i], 0x1p-24 * loss[i]);
    for (std::size_t i = 0; i < dlogits.values.size(); ++i)
      EXPECT_NEAR(result.dlogits[i], dlogits.values[i], 0x1p-23 * std::abs(dlogits.values[i]) + 1e-16);
  }
}

TEST(Loss, WeightsOfOneChangeNoBit) {
  constexpr Index n = 9, classes = 7;
  const std::vector<float> ones(classes, 1);
  const std::vector<SampleSpec> samples = formula_samples("labels", n, classes, false);
  const reference::Tensor exact = formula_tensor("logits", {n, classes}, 8);
  const std::vector<float> logits(exact.values.begin(), exact.values.end());
  const Evaluated plain = evaluate({.classes = classes}, samples, logits),
                  weighted = evaluate({.classes = classes, .class_weights = ones}, samples, logits);
  EXPECT_EQ(weighted.loss, plain.loss);
  EXPECT_EQ(weighted.dlogits, plain.dlogits);
}

TEST(Loss, HugeLogitsStayFinite) {
  const Evaluated result = evaluate({.classes = 3}, {{.a = 1}, {.a = 0}}, {3e38F, -3e38F, 0, 1e30F, 0, 0});
  EXPECT_FLOAT_EQ(result.loss[0], infinity) << "6e38 doesn't fit fp32";
  EXPECT_EQ(result.loss[1], 0);
  for (const float d : result.dlogits) EXPECT_TRUE(std::isfinite(d));
}

TEST(Loss, NonFiniteLogitsShow) {
  for (const float bad : {nan, infinity}) {
    for (std::size_t at = 0; at < 3; ++at) {
      std::vector<float> logits{1, 2, 3};
      logits[at] = bad;
      const Evaluated result = evaluate({.classes = 3, .topk = 2}, {{.a = 0}}, logits);
      EXPECT_FALSE(std::isfinite(result.loss[0]));
      EXPECT_FALSE(std::isfinite(result.counters.sums[Counter::loss]));
    }
  }
  const Evaluated result = evaluate({.classes = 3, .topk = 2}, {{.a = 0}}, {nan, nan, nan});
  EXPECT_EQ(result.counters.sums[Counter::top1], 0) << "a diverged network scores no hit";
  EXPECT_EQ(result.counters.sums[Counter::topk], 0);
}

TEST(Loss, CountsHitsOfTheFirstLabel) {
  const std::vector<float> logits{5, 4, 3, 2,   // label 0: first
                                  5, 4, 3, 2,   // label 1: second
                                  5, 4, 3, 2,   // label 2: third
                                  7, 7, 7, 7,   // label 0 of four equal ones: first
                                  7, 7, 7, 7};  // label 2 of four equal ones: third
  const std::vector<SampleSpec> samples{
      {.a = 0, .b = 3}, {.a = 1, .b = 0, .lambda = 0.5F}, {.a = 2}, {.a = 0}, {.a = 2}};
  const Evaluated result = evaluate({.classes = 4, .topk = 2}, samples, logits);
  EXPECT_EQ(result.counters.sums[Counter::top1], 2);
  EXPECT_EQ(result.counters.sums[Counter::topk], 3);
}

TEST(Loss, TopKAboveTheClassesCountsAll) {
  EXPECT_EQ(evaluate({.classes = 2, .topk = 5}, {{.a = 0}, {.a = 1}}, {1, 2, 1, 2}).counters.sums[Counter::topk], 2);
}

TEST(Loss, RowsPastTheValidOnesCountNothing) {
  const std::vector<float> logits{1, 2, 3, nan, nan, nan};
  Evaluated result = evaluate({.classes = 3}, {{.a = 2}, {.a = 2}}, logits, 1);
  EXPECT_EQ(result.counters.samples, 1);
  EXPECT_EQ(result.counters.sums[Counter::top1], 1);
  EXPECT_EQ(result.loss[1], 0);
  EXPECT_TRUE(std::isfinite(result.counters.sums[Counter::loss]));
  for (std::size_t i = 3; i < 6; ++i) EXPECT_EQ(result.dlogits[i], 0);
}

TEST(Loss, CountersAddUpAndGradientsMayBeLeftOut) {
  Counters counters;
  const std::vector<SampleSpec> samples{{.a = 0}};
  const std::vector<float> logits{0, 0};
  float loss = nan;
  for (int i = 0; i < 3; ++i)
    softmax_cross_entropy({.classes = 2}, samples, 1, logits.data(), &loss, nullptr, counters);
  EXPECT_EQ(counters.samples, 3);
  EXPECT_NEAR(counters.sums[Counter::loss], 3 * std::log(2.0), 1e-7);
}

}  // namespace
}  // namespace convoy::cpu
