// SPDX-License-Identifier: Apache-2.0
// The only place where <<<>>> stands. A .cu file includes this and nothing else of CUDA but cuda_fp16.h and
// cuda_bf16.h, so that the host compiler takes it too: tests run the kernels on the host (tests/support/host_cuda).
#pragma once
#include "backend/cuda/kernels/early.hpp"

#ifdef __CUDACC__
#include <cuda_runtime.h>

#define DYNAMIC_SHARED(type, name)                            \
  extern __shared__ __align__(16) unsigned char name##_raw[]; \
  type* const name = reinterpret_cast<type*>(name##_raw)

namespace convoy::cuda {

/// The first statement of every kernel. Where it was launched early, waits until what was launched before it has ended
/// and its writes are seen; then lets what is launched behind it begin. Else it does nothing.
__device__ __forceinline__ void await_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Queues kernel<<<grid, block, shared_bytes, stream>>>(args...), converted to the kernel's parameter types.
template <class... P, class... A>
cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                   A... args) {
  if (!launches_early) {
    kernel<<<grid, block, shared_bytes, stream>>>(static_cast<P>(args)...);
    return cudaGetLastError();
  }
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...);
}

}  // namespace convoy::cuda
#else
#include "support/host_cuda/host_cuda.hpp"

#define DYNAMIC_SHARED(type, name) type* const name = static_cast<type*>(host_cuda::dynamic_shared())  // NOLINT

namespace convoy::cuda {
using host_cuda::launch;
/// Work of a stream runs one after the other here. That kernels wait is seen in their machine code (test cuda.sass).
inline void await_previous() {}
}  // namespace convoy::cuda
#endif
