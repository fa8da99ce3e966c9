// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/sgd.hpp"

namespace convoy {

/// LARS (You, Gitman, Ginsburg 2017, arXiv 1708.03888, equation 6): SGD with a momentum, in which each tensor has
///   ratio = trust coefficient * |w| / (|g| + decay * |w|); v = momentum * v + ratio * (g + decay * w)
/// and the learning rate stands outside of the velocity, as in Sgd. Where a norm is 0 the ratio is 1.
struct Lars {
  static constexpr const char *name = "lars", *title = "LARS";
  static constexpr RuleNames aliases{};
  static constexpr std::array<const char*, 1> slots{"momentum"};
  static constexpr std::array<RuleOption, 3> options{{
      momentum_option,
      {"lars-trust-coefficient",
       {"lars-eta", "trust-coefficient"},
       0.001,
       0,
       1,
       true,
       "an update's size as a part of the weights' norm, at a learning rate of 1"},
      adapt_all_option,
  }};
  static constexpr Recipes recipes{1e-2, 100, "5e-5 to 5e-4", "1 to 40", 1, false};

  enum Number { momentum, trust, all };
  CONVOY_HD static void prepare(const OptionValues& given, double, float* numbers) {
    for (int i = 0; i < 3; ++i) numbers[i] = static_cast<float>(given.value[i]);
  }
  CONVOY_HD static float measured(const UpdateFactors& f, float, float g, float) { return f.clip * g; }
  CONVOY_HD static double ratio(const float* numbers, const TensorNorms& t) {
    if (!t.adapts(numbers[all])) return 1;
    return static_cast<double>(numbers[trust]) * t.weight / (t.measured + static_cast<double>(t.decay) * t.weight);
  }
  CONVOY_HD static float update(const UpdateFactors& f, float w, float g, float& v) {
    v = f.numbers[momentum] * v + f.ratio * (f.clip * g + f.decay * w);
    return w - f.learning_rate * v;
  }
};

}  // namespace convoy
