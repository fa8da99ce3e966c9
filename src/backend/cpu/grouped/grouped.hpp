// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "backend/cpu/convolution_kernel.hpp"

namespace convoy::cpu {

/// Whether ours is faster than what oneDNN has besides its reference, by bench/results.md. Where it has nothing else,
/// ConvolutionKernel::make takes ours in any case.
bool grouped_pays(Isa isa, const ConvolutionShape& shape, Direction direction);

/// Our own kernel for any shape, on any instruction set: fast where groups are narrow.
std::unique_ptr<ConvolutionKernel> make_grouped(Isa isa, const ConvolutionSpec& spec);

}  // namespace convoy::cpu
