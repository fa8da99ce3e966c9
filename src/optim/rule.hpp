// SPDX-License-Identifier: Apache-2.0
// What the rule of an optimiser is made of. A rule is one struct in one header of this folder, with these members:
//   name, title   its name on the command line and in texts
//   aliases       what other programs call it
//   slots         names of its state of each weight, under which checkpoints store it
//   options       its hyper-parameters; OptionValues holds their values in this order
//   recipes       which weight decays and learning rates are usual
//   prepare(options, step, numbers)   computes once per step what the formula takes from UpdateFactors::numbers; `step`
//                                     counts the applied updates from 1 on, since the slots were zero
//   update(factors, w, g, slots...)   the formula for one weight: updates its slots and returns the new weight
// A layer-wise rule has two more. Updaters take norms over each tensor before they update it:
//   measured(factors, w, g, slots...) the number whose norm counts beside that of w; it changes nothing
//   ratio(numbers, norms)             UpdateFactors::ratio of the tensor
// A matrix rule has three more. Updaters make the matrices orthogonal that Parameter::is_matrix() names:
//   gathered(factors, g, slots...)    the number of one weight of a matrix that becomes orthogonal; updates its slots
//   matrix_ratio(numbers, rows, columns)  UpdateFactors::ratio of a matrix
//   matrix_update(factors, w, o)      the new weight, by the orthogonal matrix's number
// The rule decides how it uses the weight decay. Clipping by the global norm is not its affair: UpdateFactors::clip
// scales its gradient.
#pragma once
#include <array>
#include <limits>
#include <type_traits>

#include "core/portable.hpp"

namespace convoy {

/// Null: none.
using RuleNames = std::array<const char*, 2>;

/// A hyper-parameter, which config turns into an option. Rules may share one.
struct RuleOption {
  const char* name;
  std::array<const char*, 3> aliases;  ///< names in other programs; null: none
  double usual;                        ///< the default
  double low, high;                    ///< allowed: from `low` to below `high`
  bool low_excluded;
  const char* help;
  /// The value that means nothing to a rule without the option, so it accepts that. NaN: there is none.
  double plain = std::numeric_limits<double>::quiet_NaN();
  bool is_switch = false;  ///< 1: on
};

/// The largest weight decay and learning rate that need no warning, and the ranges of published recipes.
struct Recipes {
  double decay, learning_rate;
  const char *decays, *learning_rates;
  double usual_rate;        ///< the learning rate of a run that names none
  bool scales_with_images;  ///< it is for 256 images per step and grows with them; else it is for any number
};

inline constexpr int max_rule_options = 8, max_rule_numbers = 12;

struct OptionValues {
  double value[max_rule_options] = {};
};

/// What is the same for all weights of a tensor in one step.
struct UpdateFactors {
  float learning_rate;  ///< includes the tensor's multiplier
  float decay;          ///< weight decay of the tensor
  float clip;           ///< scales the gradient, before any decay is added; 1: not clipped
  float numbers[max_rule_numbers];
  float ratio = 1;  ///< of a layer-wise or matrix rule
};

/// Of one tensor, for a layer-wise rule.
struct TensorNorms {
  double weight, measured;
  float decay;
  bool is_weight;  ///< of a convolution or linear layer; else a bias, or a batch norm's scale or shift

  /// Biases and batch norms are left out, as the authors' programs do.
  CONVOY_HD bool adapts(float all) const { return (is_weight || all != 0) && weight > 0 && measured > 0; }
};
inline constexpr RuleOption adapt_all_option{
    "adapt-all", {"always-adapt"}, 0, 0, 2, false, "biases and batch norms have a ratio of norms, too", 0, true};

template <class R, class = void>
inline constexpr bool is_layerwise = false;
template <class R>
inline constexpr bool is_layerwise<R, std::void_t<decltype(&R::ratio)>> = true;

template <class R, class = void>
inline constexpr bool is_matrix_rule = false;
template <class R>
inline constexpr bool is_matrix_rule<R, std::void_t<decltype(&R::matrix_ratio)>> = true;

}  // namespace convoy
