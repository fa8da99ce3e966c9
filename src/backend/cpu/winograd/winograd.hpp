// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "backend/cpu/convolution_kernel.hpp"

namespace convoy::cpu {

/// Whether there is a kernel: 3x3, one group, any number of channels, not the plain image; stride 1, or in fp32 stride
/// 2 with a border of one pixel.
bool winograd_fits(const ConvolutionShape& shape);
/// F(4x4, 3x3) for a shape that fits, on any instruction set. Transformations compute in fp32; products too, but for
/// Algorithm::winograd_bf16 where the machine has AVX512_BF16.
std::unique_ptr<ConvolutionKernel> make_winograd(Isa isa, const ConvolutionSpec& spec);

}  // namespace convoy::cpu
