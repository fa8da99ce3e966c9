// SPDX-License-Identifier: Apache-2.0
// A libconvoy_cuda.so that was built with some other program.
#include "backend/cuda/module.hpp"

extern "C" const convoy::CudaEntry* convoy_cuda_entry() {
  static const convoy::CudaEntry entry{.build = "another build"};
  return &entry;
}
