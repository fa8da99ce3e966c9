// SPDX-License-Identifier: Apache-2.0
// The last of several blocks to finish goes on with what all of them wrote, so that this needs no launch of its own.
#pragma once
#include "backend/cuda/kernels/launch.cuh"

namespace convoy::cuda {

/// Whether this block is the last of `blocks` that come to `arrivals`, which is 0 before and after, so that a replayed
/// launch finds it as the first did. What the others wrote before is then seen by __ldcg: the first-level caches of two
/// blocks may differ. Uniform. All threads of the block call it.
__device__ __forceinline__ bool comes_last(unsigned* arrivals, unsigned blocks) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    last = atomicInc(arrivals, blocks - 1) == blocks - 1;
    __threadfence();
  }
  __syncthreads();
  return last;
}

}  // namespace convoy::cuda
