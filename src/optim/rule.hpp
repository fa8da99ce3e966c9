// SPDX-License-Identifier: Apache-2.0
// What the rule of an optimiser is made of. A rule is one struct in one header of this folder, with these members:
//   name, title, note   its name on the command line, its name in texts, and what other programs call it (or "")
//   slots               names of its state of each weight, under which checkpoints store it
//   options             its hyper-parameters; OptionValues holds their values in this order
//   recipes             which weight decays and learning rates are usual
//   prepare(options, step, numbers)   computes once per step what the formula takes from UpdateFactors::numbers; `step`
//   counts
//                                     the applied updates from 1 on, since the slots were zero
//   update(factors, w, g, slots...)   the formula for one weight: updates its slots and returns the new weight
// The rule decides how it uses the weight decay. Clipping by the global norm is not its affair: UpdateFactors::clip
// scales its gradient.
#pragma once
#include <array>
#include <limits>

#include "core/portable.hpp"

namespace convoy {

/// A hyper-parameter, which config turns into an option. Rules may share one.
struct RuleOption {
  const char* name;
  std::array<const char*, 3> aliases;  ///< names in other programs; null: none
  double usual;                        ///< the default
  double low, high;                    ///< allowed: from `low` to below `high`
  bool low_excluded;
  const char* help;
  /// The value with which the rule is plain SGD, so rules without the option accept it too. NaN: there is none.
  double plain = std::numeric_limits<double>::quiet_NaN();
};

/// The largest weight decay and learning rate that need no warning, and the ranges of published recipes.
struct Recipes {
  double decay, learning_rate;
  const char *decays, *learning_rates;
};

inline constexpr int max_rule_options = 8, max_rule_numbers = 8;

struct OptionValues {
  double value[max_rule_options] = {};
};

/// What is the same for all weights of a tensor in one step.
struct UpdateFactors {
  float learning_rate;  ///< includes the tensor's multiplier
  float decay;          ///< weight decay of the tensor
  float clip;           ///< scales the gradient, before any decay is added; 1: not clipped
  float numbers[max_rule_numbers];
};

}  // namespace convoy
