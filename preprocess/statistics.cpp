// SPDX-License-Identifier: Apache-2.0
#include "preprocess/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/errors.hpp"
#include "core/stop.hpp"

namespace convoy::preparation {
namespace {
constexpr Index samples_between_looks = 256;
}

PixelSums sum_pixels(const Source& source, Range range, bool with_image) {
  const SourceInfo& info = source.info();
  const auto channels = static_cast<std::size_t>(info.channels), bytes = static_cast<std::size_t>(info.image_bytes());
  PixelSums sums{std::vector<std::int64_t>(channels), std::vector<std::int64_t>(channels),
                 std::vector<std::int64_t>(with_image ? bytes : 0)};
  std::vector<std::uint8_t> image(bytes);
  for (Index sample = range.begin; sample < range.end(); ++sample) {
    if (sample % samples_between_looks == 0) leave_if_stopped("measuring mean and standard deviation");
    source.read(Split::train, sample, image.data());
    for (std::size_t c = 0; c < channels; ++c) {
      std::int64_t sum = 0, squares = 0;
      for (std::size_t i = c; i < bytes; i += channels) {
        const std::int64_t value = image[i];
        sum += value;
        squares += value * value;
      }
      sums.sum[c] += sum;
      sums.squares[c] += squares;
    }
    for (std::size_t i = 0; i < sums.image.size(); ++i) sums.image[i] += image[i];
  }
  return sums;
}

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
  const Index pixels_per_image = static_cast<Index>(sums.image.size() / std::max<std::size_t>(sums.sum.size(), 1));
  const Index samples = pixels_per_image > 0 ? pixels / pixels_per_image : 0;
  for (const std::int64_t sum : sums.image) {
    result.mean_image.push_back(static_cast<float>(static_cast<double>(sum) / static_cast<double>(samples)));
  }
  return result;
}

}  // namespace convoy::preparation
