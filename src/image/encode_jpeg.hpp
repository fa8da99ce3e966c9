// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "image/image.hpp"

namespace convoy {

/// Baseline JPEG of 1 or 3 channels (RGB, chroma halved on both axes), accurate DCT; replaces `to`. quality: 1 to 100.
/// The same bytes on every machine. Throws Error(internal) for sizes that JPEG can't hold.
void encode_jpeg(const ImageView& image, int quality, std::vector<std::uint8_t>& to);

}  // namespace convoy
