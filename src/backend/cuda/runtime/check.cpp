// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/runtime/check.hpp"

#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

const char* remedy(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "lower --batch-size or use a GPU with more memory";
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidConfiguration:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureUnsupported:
      return "that is an error of the program: please report it with the command";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
      return "this build has no code for the GPU: build with CMAKE_CUDA_ARCHITECTURES for it";
    case cudaErrorECCUncorrectable:
      return "the GPU's memory is damaged: leave this node out and tell its administrators";
    default:
      return "see nvidia-smi and the kernel log; continue with --resume auto";
  }
}

}  // namespace

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // else the next launch would report it again
  fail(Exit::device, "CUDA: {} failed ({}: {}); {}", what, cudaGetErrorName(error), cudaGetErrorString(error),
       remedy(error));
}

}  // namespace convoy::cuda
