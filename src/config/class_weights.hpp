// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "options/option.hpp"

namespace convoy {

/// --class-weights: the weight of each class in the training loss, as the user gives it.
struct ClassWeights {
  bool automatic = false;      ///< by the inverse of the class's share in the training set
  std::vector<double> values;  ///< one per class, in their order
  bool given() const { return automatic || !values.empty(); }
};

Option class_weights_option(ClassWeights& weights);

/// Whether the option's value is the name of a file that holds the numbers.
bool names_weights_file(const std::string& value);
/// The file's numbers as the option takes them: separated by commas, blanks or ends of lines; the rest of a line behind
/// `#` is left out.
std::string weights_of_file(const std::string& text);

}  // namespace convoy
