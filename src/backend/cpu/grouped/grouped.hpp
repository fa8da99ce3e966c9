// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "backend/cpu/convolution_kernel.hpp"

namespace convoy::cpu {

/// Our own kernel for any shape, on any instruction set: fast where groups are narrow.
std::unique_ptr<ConvolutionKernel> make_grouped(Isa isa, const ConvolutionSpec& spec);

}  // namespace convoy::cpu
