// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cpu/program_parts.hpp"

namespace convoy::cpu {

/// Shape of the convolution that value `id` is, for `images` images.
ConvolutionShape convolution_shape(const ProgramParts& parts, int id, Index images);

}  // namespace convoy::cpu
