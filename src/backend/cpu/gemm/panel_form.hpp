// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace convoy::cpu {

/// How the tiles or pixels of a product lie in memory. bf16 wants AVX512_BF16, whose products take two neighbours:
/// channels in multiply, tiles in filter_gradients.
enum class PanelForm : std::uint8_t {
  f32,         ///< [block][capacity][16]
  bf16,        ///< the same
  bf16_pairs,  ///< [block][capacity / 2][16][2]: capacity is even, and a missing last tile is 0
};

}  // namespace convoy::cpu
