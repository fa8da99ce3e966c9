// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/types.hpp"

namespace convoy {

struct ImageSize {
  Index height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};

/// Rows y .. y + height, columns x .. x + width.
struct Region {
  Index y = 0, x = 0, height = 0, width = 0;
  bool operator==(const Region&) const = default;
};

/// Borrowed 8-bit pixels, channels interleaved; rows may have gaps between them.
struct ImageView {
  const std::uint8_t* pixels = nullptr;
  Index height = 0, width = 0, channels = 0;
  Index row_bytes = 0;  ///< from one row to the next
  const std::uint8_t* row(Index y) const { return pixels + y * row_bytes; }
  ImageView part(const Region& r) const {
    return {pixels + r.y * row_bytes + r.x * channels, r.height, r.width, channels, row_bytes};
  }
};

/// 8-bit pixels h w c without gaps. Keeps its memory when it becomes smaller.
struct Image {
  Index height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> pixels;

  void reshape(Index new_height, Index new_width, Index new_channels) {
    height = new_height;
    width = new_width;
    channels = new_channels;
    pixels.resize(static_cast<std::size_t>(height * width * channels));
  }
  std::uint8_t* row(Index y) { return pixels.data() + y * width * channels; }
  const std::uint8_t* row(Index y) const { return pixels.data() + y * width * channels; }
  ImageView view() const { return {pixels.data(), height, width, channels, width * channels}; }
};

}  // namespace convoy
