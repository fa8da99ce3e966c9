// SPDX-License-Identifier: Apache-2.0
// Private to image: libwebp, if the build found it. Pixels stay as stored (not upright); of an animation the first
// frame.
#pragma once
#include <span>

#include "image/decode.hpp"

namespace convoy {

bool is_webp(std::span<const std::uint8_t> file);
DecodeStatus read_webp_header(std::span<const std::uint8_t> file, ImageHeader& header);
/// 3 channels of 8 bits.
DecodeStatus read_webp(std::span<const std::uint8_t> file, Image& to);

}  // namespace convoy
