// SPDX-License-Identifier: Apache-2.0
// Sizes and layouts of lowered values for one image size and precision.
#pragma once
#include <vector>

#include "backend/cpu/convolution.hpp"
#include "backend/cpu/lowering.hpp"

namespace convoy {

struct Geometry {
  Layout layout = Layout::blocked;
  Storage storage = Storage::f32;  ///< of spatial values
  std::vector<Field> fields;       ///< per value, for one image
};

Geometry make_geometry(const Plan& plan, const Lowering& lowering, Index height, Index width, Layout layout,
                       Storage storage);

/// Shape of the convolution that value `id` is, for `images` images.
ConvolutionShape convolution_of(const Plan& plan, const Lowering& lowering, const Geometry& geometry, int id,
                                Index images);

}  // namespace convoy
