// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/kernel_loops.hpp"

namespace convoy::cpu {

const KernelTable kernels_avx512 = make_kernel_table("AVX-512", true);

}  // namespace convoy::cpu
