// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>

namespace convoy {

/// The orientation (1 to 8) in a TIFF structure as EXIF has it (JPEG's APP1 after `Exif\0\0`, PNG's eXIf); 1 where
/// there is none or it makes no sense.
std::uint8_t find_orientation(std::span<const std::uint8_t> tiff);

}  // namespace convoy
