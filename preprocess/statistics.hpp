// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "core/types.hpp"

namespace convoy::preparation {

/// Integer sums over pixels, per channel, so that any cut of the data over ranks gives the same bits.
struct PixelSums {
  std::vector<std::int64_t> sum, squares;
  std::vector<std::int64_t> products = {};  ///< of three channels: 0 and 1, 0 and 2, 1 and 2; else empty
};

/// Of the whole population.
struct Normalisation {
  std::vector<double> mean, std;   ///< per channel, pixel units
  std::vector<double> covariance;  ///< 3 x 3, squared pixel units; empty unless there are products
};

/// Exact until the last divisions and square root. Throws Error(data) past 1.4e14 pixels, where sums would overflow.
Normalisation normalisation_of(const PixelSums& sums, Index pixels);

}  // namespace convoy::preparation
