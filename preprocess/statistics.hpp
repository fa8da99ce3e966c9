// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "comm/communicator.hpp"
#include "preprocess/source.hpp"

namespace convoy::preparation {

/// Integer sums over pixels, so that any cut of the data over ranks gives the same bits.
struct PixelSums {
  std::vector<std::int64_t> sum, squares;  ///< per channel
  std::vector<std::int64_t> image;         ///< per pixel and channel, or empty
};

/// Over samples [range.begin, range.end()) of the train split, in the source's order.
PixelSums sum_pixels(const Source& source, Range range, bool with_image);

struct Normalisation {
  std::vector<double> mean, std;  ///< per channel, pixel units; std of the whole population
  std::vector<float> mean_image;  ///< empty where not asked for
};

/// Exact until the last division and square root. Throws Error(data) past 1.4e14 pixels, where sums would overflow.
Normalisation normalisation_of(const PixelSums& sums, Index pixels);

}  // namespace convoy::preparation
