// SPDX-License-Identifier: Apache-2.0
#include "core/cpu_isa.hpp"

#include <cstdlib>
#include <string_view>

#include "core/errors.hpp"

namespace convoy {

CpuIsa max_cpu_isa() {
  const char* const name = std::getenv("CONVOY_MAX_CPU_ISA");
  if (name == nullptr) return CpuIsa::avx512_core_amx;
  const std::string_view wanted = name;
  if (wanted == "AVX2") return CpuIsa::avx2;
  if (wanted == "AVX512_CORE") return CpuIsa::avx512_core;
  if (wanted == "AVX512_CORE_BF16") return CpuIsa::avx512_core_bf16;
  if (wanted == "AVX512_CORE_AMX") return CpuIsa::avx512_core_amx;
  fail(Exit::usage, "CONVOY_MAX_CPU_ISA is '{}'; use AVX2, AVX512_CORE, AVX512_CORE_BF16 or AVX512_CORE_AMX", wanted);
}

}  // namespace convoy
