// SPDX-License-Identifier: Apache-2.0
// The headers of this folder are C++17 and hold the formulas that every backend shares; CUDA kernels include them too.
#pragma once

#ifdef __CUDACC__
#define CONVOY_HD __host__ __device__
#else
#define CONVOY_HD
#endif
