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
  /// n^2 times the covariance of two channels, of whose products the sum is given.
  const auto spread = [&](std::size_t a, std::size_t b, std::int64_t products) {
    __extension__ using Wide = __int128;
    return static_cast<double>(Wide{pixels} * products - Wide{sums.sum[a]} * sums.sum[b]);
  };
  for (std::size_t c = 0; c < sums.sum.size(); ++c) {
    result.mean.push_back(static_cast<double>(sums.sum[c]) / n);
    result.std.push_back(std::sqrt(spread(c, c, sums.squares[c])) / n);
  }
  if (sums.products.empty()) return result;
  require(sums.products.size() == 3 && sums.sum.size() == 3, "products of other than three channels");
  for (std::size_t a = 0; a < 3; ++a)
    for (std::size_t b = 0; b < 3; ++b)
      result.covariance.push_back(spread(a, b, a == b ? sums.squares[a] : sums.products[a + b - 1]) / n / n);
  return result;
}

}  // namespace convoy::preparation
