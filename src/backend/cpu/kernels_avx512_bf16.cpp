// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/kernel_loops.hpp"

namespace convoy::cpu {

const KernelTable kernels_avx512_bf16 = make_kernel_table("AVX-512 bf16", true);

}  // namespace convoy::cpu
