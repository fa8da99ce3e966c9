// SPDX-License-Identifier: Apache-2.0
// Channels whose variance drowns in fp32 sums of squares, and what a backend may be off by.
#pragma once
#include <array>

#include "support/formula.hpp"
#include "support/rounding.hpp"

namespace convoy {

enum class HardChannel : std::uint8_t {
  around_zero,      ///< mean / deviation 1
  nearly_constant,  ///< 1e2
  almost_constant,  ///< 1e3
  white_page,       ///< paper at 1, a hundredth of the pixels is ink, below a blank half
  outlier_first,    ///< almost constant, but for the first pixel
  sorted,           ///< every run of pixels has a mean of its own
  constant
};
constexpr std::array hard_channels{HardChannel::around_zero, HardChannel::nearly_constant, HardChannel::almost_constant,
                                   HardChannel::white_page,  HardChannel::outlier_first,   HardChannel::sorted,
                                   HardChannel::constant};

/// Pixel `i` of `count`.
inline float hard_pixel(HardChannel channel, Index i, Index count) {
  const float dice = formula_uniform("pixel", i);
  constexpr float to_deviation_one = 1.7320508F;
  switch (channel) {
    case HardChannel::around_zero:
      return 1 + to_deviation_one * dice;
    case HardChannel::nearly_constant:
      return 100 + to_deviation_one * dice;
    case HardChannel::almost_constant:
      return 1000 + to_deviation_one * dice;
    case HardChannel::white_page:
      return 2 * i > count && dice > 0.98F ? 0.1F : 0.98F;
    case HardChannel::outlier_first:
      return i == 0 ? -1000.0F : 1000 + to_deviation_one * dice;
    case HardChannel::sorted:
      return 1000 + static_cast<float>(i) / static_cast<float>(count);
    case HardChannel::constant:
      return 0.1F;
  }
  return 0;
}

/// Relative error of a variance: 136 u = 8.1e-6. Runs of at most 32 additions in fp32 are off by 35 u of their squares
/// (Higham, section 4.2: 32 additions; a difference squared; a product), and by 33 u more through their sums, and the
/// squares around the means of all runs before sum to at most twice the spread.
constexpr double variance_bound = 136 * fp32_unit;

}  // namespace convoy
