// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/types.hpp"

namespace convoy::cuda {

struct Divided {
  Index quotient, rest;
};

/// n = quotient * by + rest. A division of 64 bits takes some 70 instructions on a GPU, one of 32 bits about 20, and
/// numbers of rows fit into 32 bits in all but the largest tensors.
__device__ __forceinline__ Divided divided(Index n, Index by) {
  if (((n | by) >> 32) == 0) {
    const auto a = static_cast<unsigned>(n), b = static_cast<unsigned>(by), quotient = a / b;
    return {static_cast<Index>(quotient), static_cast<Index>(a - quotient * b)};
  }
  const Index quotient = n / by;
  return {quotient, n - quotient * by};
}

}  // namespace convoy::cuda
