// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/kernel_loops.hpp"

namespace convoy::cpu {

const KernelTable kernels_avx2 = make_kernel_table("AVX2", false);

}  // namespace convoy::cpu
