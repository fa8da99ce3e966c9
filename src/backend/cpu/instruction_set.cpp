// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/instruction_set.hpp"

#include <fmt/core.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

#include "core/errors.hpp"
#include "core/topology.hpp"

namespace convoy::cpu {

namespace {

/// Gives oneDNN our own limit, once and before the library looks at the CPU. Without one it keeps its own.
void limit_onednn() {
  // oneDNN 2 and 3 name "no limit" differently.
  const auto wanted = []() -> std::optional<dnnl_cpu_isa_t> {
    switch (max_cpu_isa()) {
      case CpuIsa::avx2:
        return dnnl_cpu_isa_avx2;
      case CpuIsa::avx512_core:
        return dnnl_cpu_isa_avx512_core;
      case CpuIsa::avx512_core_bf16:
        return dnnl_cpu_isa_avx512_core_bf16;
      case CpuIsa::avx512_core_amx:
        break;
    }
    return std::nullopt;
  }();
  if (!wanted) return;
  static const dnnl_status_t status = dnnl_set_max_cpu_isa(*wanted);
  if (status != dnnl_success)
    fail(Exit::device, "oneDNN does not accept CONVOY_MAX_CPU_ISA (it was built without this limit); unset it");
}

}  // namespace

InstructionSet find_instruction_set() {
  limit_onednn();
  // Each set of oneDNN's contains the bits of the sets it extends.
  const auto has = [isa = static_cast<unsigned>(dnnl_get_effective_cpu_isa())](dnnl_cpu_isa_t wanted) {
    return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
  };
  if (!has(dnnl_cpu_isa_avx2))
    fail(Exit::device, "this CPU has no AVX2 (or ONEDNN_MAX_CPU_ISA forbids it); use another machine");
  // Below AVX-512 the library blocks by 8 channels, our loops by 16: nhwc suits both.
  if (!has(dnnl_cpu_isa_avx512_core)) return {Isa::avx2, MemoryFormat::nhwc, MemoryFormat::nhwc};
  if (!has(dnnl_cpu_isa_avx512_core_bf16)) return {Isa::avx512, MemoryFormat::blocked, MemoryFormat::blocked};
  // The matrix unit's kernels want nhwc.
  const bool amx = has(dnnl_cpu_isa_avx512_core_amx);
  return {Isa::avx512_bf16, MemoryFormat::blocked, amx ? MemoryFormat::nhwc : MemoryFormat::blocked};
}

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::avx2:
      return "AVX2";
    case Isa::avx512:
      return "AVX-512";
    case Isa::avx512_bf16:
      return "AVX-512 bf16";
  }
  return "";
}

bool has_avx512(Isa isa) {
  switch (isa) {
    case Isa::avx2:
      return false;
    case Isa::avx512:
    case Isa::avx512_bf16:
      return true;
  }
  return false;
}

std::string onednn_version() {
  const auto* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

}  // namespace convoy::cpu
