// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include "optim/sgd.hpp"

namespace convoy {

/// PyTorch's torch.optim.RMSprop, not centred: g += decay * w; s = alpha * s + (1 - alpha) * g^2;
/// v = momentum * v + g / (sqrt(s) + epsilon); w -= learning rate * v. The defaults are those of torchvision's recipes.
struct RmsProp {
  static constexpr const char *name = "rmsprop", *title = "RMSprop";
  static constexpr RuleNames aliases{"rms-prop"};
  static constexpr std::array<const char*, 2> slots{"square_avg", "momentum"};
  static constexpr std::array<RuleOption, 3> options{{
      momentum_option,
      {"rmsprop-alpha", {"rmsprop-decay"}, 0.9, 0, 1, false, "fraction of the mean squared gradient that a step keeps"},
      {"rmsprop-epsilon", {"rmsprop-eps"}, 0.0316, 0, 1, true, "added to the root of the mean squared gradient"},
  }};
  static constexpr Recipes recipes{1e-2, 1, "1e-5 to 1e-4", "0.01 to 0.1", 0.016, true};

  enum Number { momentum, alpha, rest, epsilon };
  CONVOY_HD static void prepare(const OptionValues& given, double, float* numbers) {
    numbers[momentum] = static_cast<float>(given.value[0]);
    numbers[alpha] = static_cast<float>(given.value[1]);
    numbers[rest] = static_cast<float>(1 - given.value[1]);
    numbers[epsilon] = static_cast<float>(given.value[2]);
  }
  CONVOY_HD static float update(const UpdateFactors& f, float w, float g, float& s, float& v) {
    const float* const n = f.numbers;
    g = f.clip * g + f.decay * w;
    s = n[alpha] * s + n[rest] * g * g;
    v = n[momentum] * v + g / (sqrtf(s) + n[epsilon]);
    return w - f.learning_rate * v;
  }
};

}  // namespace convoy
