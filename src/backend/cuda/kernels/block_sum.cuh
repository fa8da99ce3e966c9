// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cuda/kernels/launch.cuh"

namespace convoy::cuda {

/// Sum over the threads of a block of Threads, in an order of its own that never changes; every thread gets it. All
/// threads call it.
template <int Threads, class T>
__device__ __forceinline__ T block_sum(T value) {
  __shared__ T part[Threads / 32];
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffU, value, lanes);
  __syncthreads();  // part may still be read by an earlier call
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
  __syncthreads();
  T sum = part[0];
  for (int i = 1; i < Threads / 32; ++i) sum += part[i];
  return sum;
}

}  // namespace convoy::cuda
