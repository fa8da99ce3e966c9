// SPDX-License-Identifier: Apache-2.0
// Sizes and layouts of lowered values for one image size and precision.
#pragma once
#include <vector>

#include "backend/cpu/convolution_kernel.hpp"
#include "backend/cpu/lowering.hpp"

namespace convoy::cpu {

struct Geometry {
  MemoryFormat format = MemoryFormat::blocked;
  Storage storage = Storage::f32;     ///< the storage of spatial values
  std::vector<TensorLayout> layouts;  ///< the layout of each value, for one image

  /// Stored in fp32 in the order n c h w. Images are where the layout is blocked: blocks of 16 would be mostly padding,
  /// and oneDNN's bf16 kernels want more than 3 channels then. With nhwc an image is like any other tensor.
  bool plain(TensorKind kind) const {
    return kind == TensorKind::features || (kind == TensorKind::image && format == MemoryFormat::blocked);
  }
};

Geometry make_geometry(const Plan& plan, const Lowering& lowering, Index height, Index width, MemoryFormat format,
                       Storage storage);

}  // namespace convoy::cpu
