// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/backend.hpp"
#include "core/types.hpp"

namespace convoy {

enum class Flip : std::uint8_t { none, random, alternating };

struct AugmentSpec {
  Index source_height = 0, source_width = 0;  ///< stored size
  Index height = 0, width = 0;                ///< network input
  bool train = true;                          ///< false: centre crop (torchvision's rounding), nothing random
  Index pad = 0;                              ///< pad on every side, then a random crop
  Flip flip = Flip::none;
  Index cutout = 0;  ///< side of the square erased at a random centre; 0: none
  std::uint64_t seed = 0;
};

/// Throws Error(usage) for a crop larger than the padded source, negative or huge sizes. Call it once, before
/// augment().
void check_augment(const AugmentSpec& spec);

/// f(seed, epoch, position in the epoch) for crop, random flip and cutout; the alternating flip is f(sample id, epoch).
/// Fills y, x, flip, erase_*; leaves sample, labels and partner alone.
void augment(const AugmentSpec& spec, Index epoch, Index position, Index sample_id, SampleSpec& to);

}  // namespace convoy
