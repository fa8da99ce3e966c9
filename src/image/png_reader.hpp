// SPDX-License-Identifier: Apache-2.0
// Private to image: libpng. Pixels stay as stored (not upright).
#pragma once
#include <span>

#include "image/decode.hpp"

namespace convoy {

DecodeStatus read_png_header(std::span<const std::uint8_t> file, ImageHeader& header);
/// 3 channels of 8 bits.
DecodeStatus read_png(std::span<const std::uint8_t> file, Image& to);

}  // namespace convoy
