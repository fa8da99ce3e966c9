// SPDX-License-Identifier: Apache-2.0
// What `convoy predict` says of one image.
#pragma once
#include <string>
#include <vector>

#include "config/config.hpp"
#include "core/types.hpp"

namespace convoy {

struct ClassProbability {
  Index index = 0;
  double probability = 0;
};

/// The k likeliest classes by softmax, ties by the lower index. `logits`: [classes].
std::vector<ClassProbability> likeliest(const float* logits, Index classes, int k);

struct Prediction {
  std::string name;   ///< file, or split and sample id
  std::string error;  ///< why there are no classes; empty: there are
  Index label = -1;   ///< the stored one; -1: none is known
  std::vector<ClassProbability> classes;
};

/// The line (JSON, CSV) or lines of one image, with their ends.
std::string print(const Prediction& prediction, PredictFormat format, const std::vector<std::string>& class_names);
/// What stands before the first image, for k classes; empty but for CSV.
std::string print_head(PredictFormat format, int k);

/// Its number where the data set gives it no name.
inline std::string class_name(const std::vector<std::string>& names, Index number) {
  const auto i = static_cast<std::size_t>(number);
  return i < names.size() ? names[i] : std::to_string(number);
}

}  // namespace convoy
