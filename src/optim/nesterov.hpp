// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/sgd.hpp"

namespace convoy {

/// PyTorch's torch.optim.SGD with nesterov=True: d = g + decay * w; v = momentum * v + d; w -= learning rate * (d +
/// momentum * v).
struct Nesterov {
  static constexpr const char *name = "nesterov", *title = "SGD";
  static constexpr RuleNames aliases{"nag", "sgd-nesterov"};
  static constexpr std::array<const char*, 1> slots{"momentum"};
  static constexpr std::array<RuleOption, 1> options{momentum_option};
  static constexpr Recipes recipes = sgd_recipes;

  CONVOY_HD static void prepare(const OptionValues& given, double step, float* numbers) {
    Sgd::prepare(given, step, numbers);
  }
  CONVOY_HD static float update(const UpdateFactors& f, float w, float g, float& v) {
    const float momentum = f.numbers[0];
    const float d = f.clip * g + f.decay * w;
    v = momentum * v + d;
    return w - f.learning_rate * (d + momentum * v);
  }
};

}  // namespace convoy
