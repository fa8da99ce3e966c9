// SPDX-License-Identifier: Apache-2.0
// The headers of this folder are C++17 and hold the formulas that every backend shares; CUDA kernels include them too.
#pragma once

/// CONVOY_FORMULA: always inlined as well. A formula that is compiled for several instruction sets needs that, since
/// the linker keeps one copy of an inline function, whichever instruction set it was compiled for.
#ifdef __CUDACC__
#define CONVOY_HD __host__ __device__
#define CONVOY_FORMULA __host__ __device__ __forceinline__
#else
#define CONVOY_HD
#define CONVOY_FORMULA [[gnu::always_inline]] inline
#endif
