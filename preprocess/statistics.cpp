// SPDX-License-Identifier: Apache-2.0
#include "preprocess/statistics.hpp"

#include <cmath>
#include <limits>

#include "core/errors.hpp"

namespace convoy::preparation {

Normalisation normalisation_of(const PixelSums& sums, Index pixels) {
  if (pixels > std::numeric_limits<std::int64_t>::max() / (255 * 255)) {
    fail(Exit::data, "the train split has too many pixels ({}) for exact sums; leave out samples", pixels);
  }
  Normalisation result;
  const auto n = static_cast<double>(pixels);
  for (std::size_t c = 0; c < sums.sum.size(); ++c) {
    __extension__ using Wide = __int128;
    const Wide spread = Wide{pixels} * sums.squares[c] - Wide{sums.sum[c]} * sums.sum[c];  // n^2 times the variance
    result.mean.push_back(static_cast<double>(sums.sum[c]) / n);
    result.std.push_back(std::sqrt(static_cast<double>(spread)) / n);
  }
  return result;
}

}  // namespace convoy::preparation
