// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace convoy {

/// Instruction sets of x86 for which there are kernels, each with those before it; oneDNN's names.
enum class CpuIsa : std::uint8_t { avx2, avx512_core, avx512_core_bf16, avx512_core_amx };

/// The largest instruction set that kernels may use, ours and oneDNN's: CONVOY_MAX_CPU_ISA in the environment,
/// avx512_core_amx (all of them) if it is unset. Throws Error(usage) if it has another value than AVX2, AVX512_CORE,
/// AVX512_CORE_BF16, AVX512_CORE_AMX.
CpuIsa max_cpu_isa();

}  // namespace convoy
