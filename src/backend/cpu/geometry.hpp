// SPDX-License-Identifier: Apache-2.0
// Sizes and layouts of lowered values for one image size and precision.
#pragma once
#include <vector>

#include "backend/cpu/convolution.hpp"
#include "backend/cpu/lowering.hpp"

namespace convoy::cpu {

struct Geometry {
  Layout layout = Layout::blocked;
  Storage storage = Storage::f32;  ///< of spatial values
  std::vector<Field> fields;       ///< per value, for one image

  /// Stored in fp32 in the order n c h w. Images are where the layout is blocked: blocks of 16 would be mostly padding,
  /// and oneDNN's bf16 kernels want more than 3 channels then. With nhwc an image is like any other tensor.
  bool plain(Form form) const { return form == Form::features || (form == Form::image && layout == Layout::blocked); }
};

Geometry make_geometry(const Plan& plan, const Lowering& lowering, Index height, Index width, Layout layout,
                       Storage storage);

/// Shape of the convolution that value `id` is, for `images` images.
ConvolutionShape convolution_of(const Plan& plan, const Lowering& lowering, const Geometry& geometry, int id,
                                Index images);

}  // namespace convoy::cpu
