// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/adam.hpp"

namespace convoy {

/// LAMB (You et al. 2020, arXiv 1904.00962, algorithm 2, with phi(x) = x): AdamW, in which each tensor has
///   u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + decay * w; w -= learning rate * |w| / |u| * u
/// Where a norm is 0 the ratio is 1.
struct Lamb : AdamMoments {
  static constexpr const char *name = "lamb", *title = "LAMB";
  static constexpr RuleNames aliases{};
  static constexpr auto slots = Adam::slots;
  static constexpr std::array<RuleOption, 4> options{adam_beta1, adam_beta2, adam_epsilon, adapt_all_option};
  static constexpr Recipes recipes{0.5, 0.1, "0.01 to 0.1", "1e-3 to 2e-2", 5e-3, false};

  enum Own { all = numbers };
  CONVOY_HD static void prepare(const OptionValues& given, double t, float* to) {
    AdamMoments::prepare(given, t, to);
    to[all] = static_cast<float>(given.value[3]);
  }
  /// Changes its own copies of the moments, so that `update` does the same again.
  CONVOY_HD static float measured(const UpdateFactors& f, float w, float g, float m, float v) {
    return direction(f.numbers, f.clip * g, m, v) + f.decay * w;
  }
  CONVOY_HD static double ratio(const float* numbers, const TensorNorms& t) {
    return t.adapts(numbers[all]) ? t.weight / t.measured : 1;
  }
  CONVOY_HD static float update(const UpdateFactors& f, float w, float g, float& m, float& v) {
    return w - f.learning_rate * f.ratio * (direction(f.numbers, f.clip * g, m, v) + f.decay * w);
  }
};

}  // namespace convoy
