// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/rule.hpp"

namespace convoy {

inline constexpr Recipes sgd_recipes{1e-2, 10, "1e-5 to 1e-3", "0.01 to 3"};

/// Stochastic gradient descent: w -= learning rate * (g + decay * w).
struct Sgd {
  static constexpr const char *name = "sgd", *title = "SGD", *note = "";
  static constexpr std::array<const char*, 0> slots{};
  static constexpr std::array<RuleOption, 0> options{};
  static constexpr Recipes recipes = sgd_recipes;

  CONVOY_HD static void prepare(const OptionValues&, double, float*) {}
  CONVOY_HD static float update(const UpdateFactors& f, float w, float g) {
    return w - f.learning_rate * (f.clip * g + f.decay * w);
  }
};

}  // namespace convoy
