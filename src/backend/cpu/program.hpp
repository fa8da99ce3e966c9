// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/program_parts.hpp"

namespace convoy::cpu {

/// What the backend lends to its programs.
struct Context {
  const Onednn& onednn;
  Isa isa = Isa::avx2;
  int threads = 1;
  MemoryFormat fp32_format = MemoryFormat::blocked, bf16_format = MemoryFormat::blocked;
  Counters& counters;
  const StepParams& step;
  const std::vector<const std::uint8_t*>& resident;  ///< images of keep_resident
};

/// Copies what it needs from the plan. Throws Error(device) where the precision isn't possible here.
std::unique_ptr<Program> make_program(const Context& context, const Plan& plan, const CompileSpec& spec);

}  // namespace convoy::cpu
