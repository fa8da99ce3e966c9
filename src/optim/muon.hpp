// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/adam.hpp"

namespace convoy {

/// Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon) as PyTorch's torch.optim.Muon defines it: the weight of
/// a convolution or linear layer is a matrix of k x (c r s), whose update is orthogonal:
///   m = momentum * m + (1 - momentum) * g; o = orthogonal((1 - momentum) * g + momentum * m)
///   w -= learning rate * (ratio * o + decay * w)
/// `ratio` is 0.2 sqrt(max(rows, columns)), so that updates are as large as AdamW's (Liu et al. 2025, arXiv 2502.16982,
/// equation 4), or Muon's own, sqrt(max(1, rows / columns)). The other parameters (biases, norms, and the layer that
/// makes the classes, as the authors have it) take AdamW's step.
struct Muon : AdamMoments {
  static constexpr const char *name = "muon", *title = "Muon";
  static constexpr RuleNames aliases{};
  static constexpr auto slots = Adam::slots;  ///< a matrix has its momentum in the first and 0 in the second
  static constexpr std::array<RuleOption, 6> options{{
      adam_beta1,
      adam_beta2,
      adam_epsilon,
      {"muon-momentum", {}, 0.95, 0, 1, false, "fraction of the mean gradient of a matrix that a step keeps"},
      {"muon-match-rms",
       {},
       1,
       0,
       2,
       false,
       "updates of matrices are as large as AdamW's; off: PyTorch's adjust_lr_fn 'original'",
       std::numeric_limits<double>::quiet_NaN(),
       true},
      {"muon-other-lr",
       {},
       1,
       0,
       1000,
       true,
       "learning rate of biases, norms and the last layer, as a multiple of the others'"},
  }};
  static constexpr Recipes recipes{0.5, 0.1, "0.01 to 0.1", "2e-4 to 0.02", 5e-3, false};

  /// X <- a X + (b X X^T + c (X X^T)^2) X, so often, of the matrix over its norm.
  static constexpr float a = 3.4445F, b = -4.7750F, c = 2.0315F;
  static constexpr int iterations = 5;
  static constexpr double least_norm = 1e-7;

  enum Own { momentum = AdamMoments::numbers, rest, match_rms, other };
  CONVOY_HD static void prepare(const OptionValues& given, double t, float* to) {
    AdamMoments::prepare(given, t, to);
    to[momentum] = static_cast<float>(given.value[3]);
    to[rest] = static_cast<float>(1 - given.value[3]);
    to[match_rms] = static_cast<float>(given.value[4]);
    to[other] = static_cast<float>(given.value[5]);
  }
  CONVOY_HD static float gathered(const UpdateFactors& f, float g, float& m, float&) {
    const float fresh = f.numbers[rest] * (f.clip * g);
    m = f.numbers[momentum] * m + fresh;
    return fresh + f.numbers[momentum] * m;
  }
  CONVOY_HD static double matrix_ratio(const float* numbers, double rows, double columns) {
    if (numbers[match_rms] != 0) return 0.2 * sqrt(rows > columns ? rows : columns);
    return rows > columns ? sqrt(rows / columns) : 1;
  }
  CONVOY_HD static float matrix_update(const UpdateFactors& f, float w, float o) {
    return w - f.learning_rate * (f.ratio * o + f.decay * w);
  }
  CONVOY_HD static float update(const UpdateFactors& f, float w, float g, float& m, float& v) {
    const float rate = f.learning_rate * f.numbers[other];
    return w - rate * (direction(f.numbers, f.clip * g, m, v) + f.decay * w);
  }
};

}  // namespace convoy
