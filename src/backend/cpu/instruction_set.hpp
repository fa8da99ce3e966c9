// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "backend/cpu/convolution.hpp"
#include "backend/cpu/kernels.hpp"

namespace convoy::cpu {

struct InstructionSet {
  const KernelTable* kernels = nullptr;
  Layout fp32_layout = Layout::blocked, bf16_layout = Layout::blocked;
};

/// What this CPU has, within the limit of max_cpu_isa() or else the one that oneDNN was given (ONEDNN_MAX_CPU_ISA), so
/// that our loops and its kernels agree. Throws Error(device) below AVX2.
InstructionSet find_instruction_set();

/// `oneDNN 2.6.3`: of the library that runs.
std::string onednn_version();

}  // namespace convoy::cpu
