// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/backend.hpp"
#include "backend/cpu/convolution_kernel.hpp"

namespace convoy::cpu {

/// Measures with all threads. `format`: of spatial tensors in the precision of `spec`.
Ceilings measure_ceilings(const Onednn& onednn, Isa isa, int threads, MemoryFormat format, const CeilingSpec& spec);

}  // namespace convoy::cpu
