// SPDX-License-Identifier: Apache-2.0
// Tensors of a few images for tests of single vector loops of the CPU.
#pragma once
#include <vector>

#include "backend/cpu/tensor_layout.hpp"
#include "core/types.hpp"

namespace convoy::cpu {

inline constexpr Index images = 2;

inline TensorLayout layout_of(Index height, Index width, Index channels, bool blocked) {
  TensorLayout layout{.channels = channels, .height = height, .width = width};
  const Index pixels = layout.pixels();
  layout.pixel = blocked ? lanes : channels;
  layout.block = blocked ? lanes * pixels : lanes;
  layout.image = blocked ? layout.block * layout.blocks() : channels * pixels;
  return layout;
}

/// A tensor of `images` in some layout.
struct Images {
  TensorLayout layout;
  std::vector<float> values = std::vector<float>(static_cast<std::size_t>(images * layout.image));

  float& at(Index n, Index c, Index p) {
    return values[static_cast<std::size_t>(n * layout.image + c / lanes * layout.block + p * layout.pixel + c % lanes)];
  }
};

}  // namespace convoy::cpu
