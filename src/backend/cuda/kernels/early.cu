// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/kernels/early.hpp"

#include "backend/cuda/kernels/launch.cuh"

namespace convoy::cuda {
namespace {

constexpr int first_major = 9;

#ifdef __CUDACC__
/// Compiled as all kernels are.
__global__ void probe_kernel() { await_previous(); }

bool kernels_wait() {
  cudaFuncAttributes attributes = {};
  if (cudaFuncGetAttributes(&attributes, probe_kernel) == cudaSuccess)
    return attributes.ptxVersion >= 10 * first_major && attributes.binaryVersion >= 10 * first_major;
  cudaGetLastError();
  return false;
}
#else
bool kernels_wait() { return true; }
#endif

bool card_can() {
  int device = 0;
  cudaDeviceProp properties = {};
  return cudaGetDevice(&device) == cudaSuccess && cudaGetDeviceProperties(&properties, device) == cudaSuccess &&
         properties.major >= first_major;
}

}  // namespace

bool launch_early(bool wanted) { return launches_early = wanted && card_can() && kernels_wait(); }

}  // namespace convoy::cuda
