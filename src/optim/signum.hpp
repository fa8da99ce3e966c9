// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/sgd.hpp"

namespace convoy {

/// Signum (Bernstein et al. 2018, arXiv 1802.04434, algorithm 2) as MXNet defines it:
///   m = momentum * m + (1 - momentum) * (g + decay * w); w -= learning rate * sign(m)
struct Signum {
  static constexpr const char *name = "signum", *title = "Signum";
  static constexpr RuleNames aliases{};
  static constexpr std::array<const char*, 1> slots{"momentum"};
  static constexpr std::array<RuleOption, 1> options{momentum_option};
  static constexpr Recipes recipes{1e-2, 0.02, "1e-5 to 1e-3", "1e-5 to 1e-3", 1e-3, false};

  enum Number { momentum, rest };
  CONVOY_HD static void prepare(const OptionValues& given, double, float* numbers) {
    numbers[momentum] = static_cast<float>(given.value[0]);
    numbers[rest] = static_cast<float>(1 - given.value[0]);
  }
  CONVOY_HD static float update(const UpdateFactors& f, float w, float g, float& m) {
    m = f.numbers[momentum] * m + f.numbers[rest] * (f.clip * g + f.decay * w);
    const float sign = m > 0 ? 1.0F : m < 0 ? -1.0F : 0.0F;
    return w - f.learning_rate * sign;
  }
};

}  // namespace convoy
