// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "backend/cpu/convolution_kernel.hpp"
#include "backend/cpu/kernels.hpp"

namespace convoy::cpu {

struct InstructionSet {
  Isa isa = Isa::avx2;
  MemoryFormat fp32_format = MemoryFormat::blocked, bf16_format = MemoryFormat::blocked;
};

/// What this CPU has, within the limit of max_cpu_isa() or else the one that oneDNN was given (ONEDNN_MAX_CPU_ISA), so
/// that our loops and its kernels agree. Throws Error(device) below AVX2.
InstructionSet find_instruction_set();

/// `AVX-512 bf16`
const char* name_of(Isa isa);
/// bf16 kernels need it.
bool has_avx512(Isa isa);

/// `oneDNN 2.6.3`: of the library that runs.
std::string onednn_version();

}  // namespace convoy::cpu
