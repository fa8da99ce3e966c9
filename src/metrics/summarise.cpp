// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/errors.hpp"
#include "metrics/metrics.hpp"

namespace convoy {

TensorSummary summarise(const std::string& name, const float* values, Index count, int bins) {
  require(count >= 0 && bins > 0, "a histogram needs bins");
  TensorSummary summary;
  summary.name = name;
  double sum = 0, squares = 0;
  double minimum = std::numeric_limits<double>::infinity(), maximum = -minimum;
  for (Index i = 0; i < count; ++i) {
    const double value = values[i];
    sum += value;
    squares += value * value;
    if (!std::isfinite(value)) {
      ++summary.not_finite;
      continue;
    }
    minimum = std::min(minimum, value);
    maximum = std::max(maximum, value);
  }
  if (count > 0) summary.mean = sum / static_cast<double>(count);
  summary.norm = std::sqrt(squares);
  if (summary.not_finite < count) {
    summary.minimum = minimum;
    summary.maximum = maximum;
  }

  double begin = summary.minimum, width = (summary.maximum - summary.minimum) / bins;
  if (!(width > 0)) {
    begin -= 0.5;
    width = 1.0 / bins;
  }
  for (int edge = 0; edge <= bins; ++edge) summary.edges.push_back(begin + edge * width);
  if (summary.maximum > summary.minimum) summary.edges.back() = summary.maximum;
  summary.counts.assign(static_cast<std::size_t>(bins), 0);
  for (Index i = 0; i < count; ++i) {
    const double value = values[i];
    if (!std::isfinite(value)) continue;
    const auto bin = static_cast<int>(std::min((value - begin) / width, bins - 1.0));
    summary.counts[static_cast<std::size_t>(bin)] += 1;
  }
  return summary;
}

}  // namespace convoy
