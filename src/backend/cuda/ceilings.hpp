// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/backend.hpp"
#include "backend/cuda/context.hpp"

namespace convoy::cuda {

/// Throws Error(device) if cuDNN has no plan for the convolution that is measured.
Ceilings measure_ceilings(const Context& context, const CeilingSpec& spec);

}  // namespace convoy::cuda
