// SPDX-License-Identifier: Apache-2.0
#include "train/class_weights.hpp"

#include <cstddef>
#include <numeric>

#include "core/errors.hpp"
#include "core/text.hpp"

namespace convoy {

std::vector<Index> count_classes(std::span<const std::int32_t> labels, Index classes) {
  std::vector<Index> counts(static_cast<std::size_t>(classes), 0);
  for (const std::int32_t label : labels)
    if (label >= 0) ++counts.at(static_cast<std::size_t>(label));
  return counts;
}

std::vector<float> loss_weights(const ClassWeights& wanted, std::span<const Index> counts, const DatasetInfo& info) {
  if (!wanted.given()) return {};
  std::vector<double> weights = wanted.values;
  if (wanted.automatic) {
    for (const Index count : counts) weights.push_back(count > 0 ? 1 / static_cast<double>(count) : 0);
  } else if (weights.size() != counts.size()) {
    fail(Exit::usage, "--class-weights has {} and '{}' {}{}; give one number for each class, in their order",
         counted(static_cast<Index>(weights.size()), "number"), info.folder, counted(info.classes, "class"),
         info.class_names.empty() ? ""
                                  : fmt::format(" ('{}' to '{}')", info.class_names.front(), info.class_names.back()));
  }
  double images = 0, sum = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    images += static_cast<double>(counts[k]);
    sum += static_cast<double>(counts[k]) * weights[k];
  }
  if (!(sum > 0))
    fail(Exit::usage,
         "--class-weights gives 0 to every class that has images in '{}', so nothing would be learned; "
         "give one of them more",
         info.folder);
  std::vector<float> scaled;
  scaled.reserve(weights.size());
  for (const double weight : weights) scaled.push_back(static_cast<float>(weight * images / sum));
  return scaled;
}

}  // namespace convoy
