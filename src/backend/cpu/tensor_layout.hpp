// SPDX-License-Identifier: Apache-2.0
// How a tensor of images lies in memory, as the vector loops see it: 16 channels at a time, addressed by strides, so
// that the same loop serves blocked layouts (nChw16c), nhwc and feature vectors. Plain types only: this header is
// compiled for several instruction sets.
#pragma once
#include <cstdint>

namespace convoy::cpu {

enum class Storage : std::uint8_t { f32, bf16 };

constexpr std::int64_t lanes = 16;

/// Strides in elements. Blocked: block = 16 * pixels, pixel = 16, missing channels are stored as zeros. nhwc: block =
/// 16, pixel = channels, nothing is stored past the last channel.
struct TensorLayout {
  Storage storage = Storage::f32;
  std::int64_t channels = 0, height = 1, width = 1;
  std::int64_t image = 0, block = 0, pixel = 0;

  std::int64_t pixels() const { return height * width; }
  std::int64_t blocks() const { return (channels + lanes - 1) / lanes; }
  /// Per-channel vectors and rows of partial sums are padded with zeros to this.
  std::int64_t padded_channels() const { return blocks() * lanes; }
  bool blocked() const { return pixel == lanes && image == block * blocks(); }
  std::int64_t element_bytes() const { return storage == Storage::f32 ? 4 : 2; }
  std::int64_t image_bytes() const { return image * element_bytes(); }
};

/// A unit is what one call of a vector loop computes at least: one image times some channel blocks, neighbours in
/// memory for nhwc, so that whole cache lines are used. Every result depends on its unit only, so that threads and
/// tiles don't change bits.
inline std::int64_t unit_blocks(const TensorLayout& layout) { return layout.blocked() ? 1 : 4; }
inline std::int64_t units_per_image(const TensorLayout& layout) {
  return (layout.blocks() + unit_blocks(layout) - 1) / unit_blocks(layout);
}

}  // namespace convoy::cpu
