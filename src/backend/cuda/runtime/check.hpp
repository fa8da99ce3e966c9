// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime_api.h>

namespace convoy::cuda {

/// Throws Error(device) unless `error` is success: what failed, CUDA's reason, what to do about it. `what`: `launch of
/// the update`.
void check(cudaError_t error, const char* what);

}  // namespace convoy::cuda
