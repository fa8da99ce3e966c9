// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/adam.hpp"

namespace convoy {

/// Adam with decoupled weight decay (Loshchilov, Hutter 2019, arXiv 1711.05101, algorithm 2) as PyTorch's
/// torch.optim.AdamW defines it: the weight decay is subtracted from the weight and stays out of the moments.
struct AdamW : AdamMoments {
  static constexpr const char *name = "adamw", *title = "AdamW";
  static constexpr RuleNames aliases{"adam-w"};
  static constexpr auto slots = Adam::slots;
  static constexpr auto options = Adam::options;
  static constexpr Recipes recipes{0.5, 0.02, "0.01 to 0.3", "1e-4 to 4e-3", 1e-3, false};

  CONVOY_HD static float update(const UpdateFactors& f, float w, float g, float& m, float& v) {
    return w - f.learning_rate * (direction(f.numbers, f.clip * g, m, v) + f.decay * w);
  }
};

}  // namespace convoy
