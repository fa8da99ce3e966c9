// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include "optim/rule.hpp"

namespace convoy {

/// PyTorch's torch.optim.Adagrad (Duchi, Hazan, Singer 2011): g += decay * w; s += g^2;
/// w -= learning rate * g / (sqrt(s) + epsilon).
struct Adagrad {
  static constexpr const char *name = "adagrad", *title = "Adagrad";
  static constexpr RuleNames aliases{};
  static constexpr std::array<const char*, 1> slots{"sum"};
  static constexpr std::array<RuleOption, 1> options{
      {{"adagrad-epsilon", {"adagrad-eps"}, 1e-10, 0, 1, true, "added to the root of the sum of squared gradients"}}};
  static constexpr Recipes recipes{1e-2, 1, "1e-5 to 1e-3", "0.001 to 0.1", 0.01, false};

  CONVOY_HD static void prepare(const OptionValues& given, double, float* numbers) {
    numbers[0] = static_cast<float>(given.value[0]);
  }
  CONVOY_HD static float update(const UpdateFactors& f, float w, float g, float& s) {
    g = f.clip * g + f.decay * w;
    s += g * g;
    return w - f.learning_rate * g / (sqrtf(s) + f.numbers[0]);
  }
};

}  // namespace convoy
