// SPDX-License-Identifier: Apache-2.0
// How values lie in memory on CUDA: n h w c, the image and what is made of it with more channels than the network sees
// (FilterCopy::stored_c). A bias is a term of the group behind its operation.
#pragma once
#include <vector>

#include "backend/cuda/filter_copies.hpp"
#include "backend/lowering/lowering.hpp"

namespace convoy::cuda {

using lowering::Layout;
using lowering::Lowering;
using lowering::Norm;
using lowering::Term;
using lowering::Value;
using lowering::ValueKind;

inline Index pixels_of(const Layout& layout) { return layout.h * layout.w; }
inline Index elements_of(const Layout& layout) { return layout.h * layout.w * layout.c; }

/// Whether a group adds two terms.
inline bool joins(const Value& value) { return value.terms.size() == 2; }

/// The lowered plan for images of height x width; of two terms a norm is the first. Throws Error(device), naming the
/// node, for what isn't possible here.
Lowering lower(const Plan& plan, const CopyLayout& copies, const CompileSpec& spec);

/// How a convolution sees its source, and its window. A linear layer is one over 1x1 pixels of h*w*c channels.
struct ConvolutionShape {
  Layout reads;
  Index k = 0, r = 1, s = 1, pad = 0, pad_w = 0, stride = 1, groups = 1;
};
/// Whether the value is a convolution or a linear layer.
bool is_convolution(const Plan& plan, const Value& value);
ConvolutionShape convolution_shape(const Plan& plan, const Lowering& lowering, const Value& value);

}  // namespace convoy::cuda
