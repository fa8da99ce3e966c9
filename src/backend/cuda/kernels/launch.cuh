// SPDX-License-Identifier: Apache-2.0
// The only place where <<<>>> stands. A .cu file includes this and nothing else of CUDA but cuda_fp16.h and
// cuda_bf16.h, so that the host compiler takes it too: tests run the kernels on the host (tests/support/host_cuda).
#pragma once
#ifdef __CUDACC__
#include <cuda_runtime.h>

#define DYNAMIC_SHARED(type, name)                            \
  extern __shared__ __align__(16) unsigned char name##_raw[]; \
  type* const name = reinterpret_cast<type*>(name##_raw)

namespace convoy::cuda {

/// Queues kernel<<<grid, block, shared_bytes, stream>>>(args...), converted to the kernel's parameter types.
template <class... P, class... A>
cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                   A... args) {
  kernel<<<grid, block, shared_bytes, stream>>>(static_cast<P>(args)...);
  return cudaGetLastError();
}

}  // namespace convoy::cuda
#else
#include "support/host_cuda/host_cuda.hpp"

#define DYNAMIC_SHARED(type, name) type* const name = static_cast<type*>(host_cuda::dynamic_shared())

namespace convoy::cuda {
using host_cuda::launch;
}
#endif
