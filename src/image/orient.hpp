// SPDX-License-Identifier: Apache-2.0
// EXIF's eight orientations. Upright pixel (y, x) is stored at: mirrored and transposed as `orientation` says.
#pragma once
#include <cstdint>
#include <span>

#include "image/image.hpp"

namespace convoy {

constexpr bool swaps_sides(std::uint8_t orientation) { return orientation >= 5; }

/// Where a region of the upright image lies in the stored one of stored_height x stored_width.
Region stored_region(const Region& upright, std::uint8_t orientation, Index stored_height, Index stored_width);

/// Stored pixels to upright ones.
void make_upright(const Image& stored, std::uint8_t orientation, Image& upright);

/// The orientation (1 to 8) in a TIFF structure as EXIF has it (JPEG's APP1 after `Exif\0\0`, PNG's eXIf); 1 where
/// there is none or it makes no sense.
std::uint8_t find_orientation(std::span<const std::uint8_t> tiff);

}  // namespace convoy
