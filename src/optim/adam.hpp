// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include "optim/rule.hpp"

namespace convoy {

inline constexpr RuleOption adam_beta1{
    "adam-beta1", {"beta1"}, 0.9, 0, 1, false, "fraction of the mean gradient that a step keeps"};
inline constexpr RuleOption adam_beta2{
    "adam-beta2", {"beta2"}, 0.999, 0, 1, false, "fraction of the mean squared gradient that a step keeps"};
inline constexpr RuleOption adam_epsilon{
    "adam-epsilon", {"adam-eps", "opt-eps"}, 1e-8, 0, 1, true, "added to the root of the mean squared gradient"};

/// The moments of Adam (Kingma, Ba 2015, arXiv 1412.6980, algorithm 1), which AdamW and LAMB have too:
///   m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2
struct AdamMoments {
  enum Number { beta1, rest1, beta2, rest2, epsilon, unbias1, unbias2, numbers };
  CONVOY_HD static void prepare(const OptionValues& given, double t, float* to) {
    const double b1 = given.value[0], b2 = given.value[1];
    to[beta1] = static_cast<float>(b1);
    to[rest1] = static_cast<float>(1 - b1);
    to[beta2] = static_cast<float>(b2);
    to[rest2] = static_cast<float>(1 - b2);
    to[epsilon] = static_cast<float>(given.value[2]);
    to[unbias1] = static_cast<float>(1 / (1 - pow(b1, t)));
    to[unbias2] = static_cast<float>(1 / sqrt(1 - pow(b2, t)));
  }
  /// Takes a gradient into the moments and returns m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon).
  CONVOY_HD static float direction(const float* n, float g, float& m, float& v) {
    m = n[beta1] * m + n[rest1] * g;
    v = n[beta2] * v + n[rest2] * g * g;
    return n[unbias1] * m / (sqrtf(v) * n[unbias2] + n[epsilon]);
  }
};

/// PyTorch's torch.optim.Adam: the weight decay is part of the gradient, and so of its moments.
struct Adam : AdamMoments {
  static constexpr const char *name = "adam", *title = "Adam";
  static constexpr RuleNames aliases{};
  static constexpr std::array<const char*, 2> slots{"exp_avg", "exp_avg_sq"};
  static constexpr std::array<RuleOption, 3> options{adam_beta1, adam_beta2, adam_epsilon};
  static constexpr Recipes recipes{1e-2, 0.02, "1e-6 to 1e-3", "1e-4 to 4e-3", 1e-3, false};

  CONVOY_HD static float update(const UpdateFactors& f, float w, float g, float& m, float& v) {
    return w - f.learning_rate * direction(f.numbers, f.clip * g + f.decay * w, m, v);
  }
};

}  // namespace convoy
