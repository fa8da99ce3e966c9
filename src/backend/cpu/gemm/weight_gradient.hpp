// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "backend/cpu/convolution_kernel.hpp"

namespace convoy::cpu {

/// Whether there is a kernel: the gradient of the weights in fp32, one group, no bias, not the plain image.
bool gemm_fits(const ConvolutionShape& shape, Direction direction);
/// Whether a pass adds the gradients of several tiles in one thread.
enum class TileSums : std::uint8_t { none, some };
/// Whether our kernel should be faster than oneDNN's, by what ADR 0047 measured.
bool gemm_pays(Isa isa, const ConvolutionShape& shape, TileSums sums);

/// Products over pixels, tap by tap, for what fits, on any instruction set. Adds to the gradients that are there.
std::unique_ptr<ConvolutionKernel> make_gemm(Isa isa, const ConvolutionSpec& spec);

}  // namespace convoy::cpu
