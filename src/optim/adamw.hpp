// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include "optim/rule.hpp"

namespace convoy {

/// Adam with decoupled weight decay (Loshchilov, Hutter 2019, arXiv 1711.05101, algorithm 2) as PyTorch's
/// torch.optim.AdamW defines it:
///   m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2
///   w -= learning rate * (m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + decay * w)
struct AdamW {
  static constexpr const char *name = "adamw", *title = "AdamW", *note = "";
  static constexpr std::array<const char*, 2> slots{"exp_avg", "exp_avg_sq"};
  static constexpr std::array<RuleOption, 3> options{{
      {"adam-beta1", {"beta1"}, 0.9, 0, 1, false, "adamw: fraction of the mean gradient that a step keeps"},
      {"adam-beta2", {"beta2"}, 0.999, 0, 1, false, "adamw: fraction of the mean squared gradient that a step keeps"},
      {"adam-epsilon",
       {"adam-eps", "opt-eps"},
       1e-8,
       0,
       1,
       true,
       "adamw: added to the root of the mean squared gradient"},
  }};
  static constexpr Recipes recipes{0.5, 0.02, "0.01 to 0.3", "1e-4 to 4e-3"};

  enum Number { beta1, rest1, beta2, rest2, epsilon, unbias1, unbias2 };
  CONVOY_HD static void prepare(const OptionValues& given, double t, float* numbers) {
    const double b1 = given.value[0], b2 = given.value[1];
    numbers[beta1] = static_cast<float>(b1);
    numbers[rest1] = static_cast<float>(1 - b1);
    numbers[beta2] = static_cast<float>(b2);
    numbers[rest2] = static_cast<float>(1 - b2);
    numbers[epsilon] = static_cast<float>(given.value[2]);
    numbers[unbias1] = static_cast<float>(1 / (1 - pow(b1, t)));
    numbers[unbias2] = static_cast<float>(1 / sqrt(1 - pow(b2, t)));
  }
  CONVOY_HD static float update(const UpdateFactors& f, float w, float g, float& m, float& v) {
    const float* const n = f.numbers;
    g *= f.clip;
    m = n[beta1] * m + n[rest1] * g;
    v = n[beta2] * v + n[rest2] * g * g;
    return w - f.learning_rate * (n[unbias1] * m / (sqrtf(v) * n[unbias2] + n[epsilon]) + f.decay * w);
  }
};

}  // namespace convoy
