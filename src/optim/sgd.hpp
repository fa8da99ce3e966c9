// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/rule.hpp"

namespace convoy {

inline constexpr Recipes sgd_recipes{1e-2, 10, "1e-5 to 1e-3", "0.01 to 3", 0.1, true};
inline constexpr RuleOption momentum_option{
    "momentum", {"mom"}, 0.9, 0, 1, false, "fraction of the velocity that a step keeps; 0: none", 0};

/// PyTorch's torch.optim.SGD with dampening 0: v = momentum * v + g + decay * w; w -= learning rate * v. The learning
/// rate stands outside of the velocity, so that a change of it acts at once.
struct Sgd {
  static constexpr const char *name = "sgd", *title = "SGD";
  static constexpr RuleNames aliases{"momentum"};
  static constexpr std::array<const char*, 1> slots{"momentum"};
  static constexpr std::array<RuleOption, 1> options{momentum_option};
  static constexpr Recipes recipes = sgd_recipes;

  CONVOY_HD static void prepare(const OptionValues& given, double, float* numbers) {
    numbers[0] = static_cast<float>(given.value[0]);
  }
  CONVOY_HD static float update(const UpdateFactors& f, float w, float g, float& v) {
    const float momentum = f.numbers[0];
    v = momentum * v + (f.clip * g + f.decay * w);
    return w - f.learning_rate * v;
  }
};

}  // namespace convoy
