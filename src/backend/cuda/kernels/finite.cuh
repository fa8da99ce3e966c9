// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cuda/kernels/launch.cuh"

namespace convoy::cuda {

/// Infinite or NaN: an exponent of all ones.
__device__ __forceinline__ bool not_finite(float x) { return (__float_as_uint(x) & 0x7f800000U) == 0x7f800000U; }

}  // namespace convoy::cuda
