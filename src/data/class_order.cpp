// SPDX-License-Identifier: Apache-2.0
#include "data/class_order.hpp"

#include <vector>

namespace convoy {

bool is_sorted_by_class(const Dataset& samples) {
  constexpr Index enough = 100;
  constexpr double few = 0.25;
  const Range range = samples.range();
  if (range.count < enough || samples.info().classes < 2) return false;
  std::vector<double> counts(static_cast<std::size_t>(samples.info().classes));
  Index changes = 0;
  for (Index i = range.begin; i < range.end(); ++i) {
    ++counts[static_cast<std::size_t>(samples.label(i))];
    if (i > range.begin && samples.label(i) != samples.label(i - 1)) ++changes;
  }
  const auto n = static_cast<double>(range.count);
  double same = 0;  // chance that two samples in a random order have the same label
  for (const double count : counts) same += count / n * (count / n);
  // A range with one class alone, out of several, is a part of a sorted set.
  return same == 1 || static_cast<double>(changes) < few * (1 - same) * n;
}

}  // namespace convoy
