// SPDX-License-Identifier: Apache-2.0
// Formulas that every backend shares are C++17 headers, which CUDA kernels include too.
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
