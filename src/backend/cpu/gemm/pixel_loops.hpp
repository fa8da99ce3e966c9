// SPDX-License-Identifier: Apache-2.0
// Gathers the pixels that one tap of a filter reads, so that the products over pixels know neither layouts nor edges.
#pragma once
#include "backend/cpu/kernels.hpp"

namespace convoy::cpu {

/// Pixels of a tensor in the order of the results of a convolution: image by image, row by row. Where a tap lies
/// outside the map, zeros.
struct PixelGather {
  const float* tensor = nullptr;
  TensorLayout layout;
  std::int64_t rows = 0, columns = 0;  ///< results of one image
  std::int64_t stride = 1;
  std::int64_t top = 0, left = 0;  ///< pixel of the tensor for the first result
  float* panels = nullptr;         ///< [block][capacity][16], zeros past the last channel
  std::int64_t capacity = 0;
  std::int64_t first = 0;  ///< number of the result whose pixel stands first in the panels
};

struct PixelKernels {
  /// The pixels [begin, end) of the panels.
  void (*gather)(const PixelGather&, std::int64_t begin, std::int64_t end);
};

}  // namespace convoy::cpu
