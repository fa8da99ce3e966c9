// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "image/image.hpp"

namespace convoy {

/// Antialiased bilinear resizing: a triangle filter whose support grows with the scale, rows first, rounded to 8 bits
/// between the passes, 22-bit weights. The bytes are those of Pillow's Image.resize(size, BILINEAR), hence of
/// torchvision's on PIL images, with every instruction set. Keeps tables and memory; one per thread.
class Resizer {
 public:
  /// All of `in` to height x width; `out` has room for height * width * channels bytes. 1 to 4 channels.
  void resize(const ImageView& in, Index height, Index width, std::uint8_t* out);
  /// A box of `in` whose sides may lie between pixels; pixels outside the box take part at its rim, as in Pillow.
  struct Box {
    double y = 0, x = 0, height = 0, width = 0;
  };
  void resize(const ImageView& in, const Box& box, Index height, Index width, std::uint8_t* out);

  /// Weights of one axis: output i is the sum of weights[i * taps + t] * input[first[i] + t], t < count[i].
  struct Axis {
    Index size = 0, taps = 0;  ///< of the output; weights kept per output, the last ones may be 0
    Index input = 0;
    double begin = 0, length = 0;
    std::vector<std::int32_t> first, count;
    std::vector<std::int32_t> weights;  ///< fixed point: see resize_kernels.hpp
  };

 private:
  Axis rows_, columns_;
  std::vector<std::uint8_t> between_, scratch_;  ///< between_: after the first pass
};

/// torchvision's Resize(side): the short side becomes `side`, the other keeps the aspect ratio, rounded down.
ImageSize with_short_side(const ImageSize& size, Index side);
/// No side longer than `side`, aspect ratio kept, rounded to nearest; never larger than before.
ImageSize within_long_side(const ImageSize& size, Index side);
/// torchvision's CenterCrop: odd rests are rounded half to even.
Region centre_region(const ImageSize& size, Index height, Index width);

}  // namespace convoy
