// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "backend/cpu/instruction_set.hpp"

namespace convoy::cpu {

/// Instruction sets of this machine for which there are kernels.
inline std::vector<Isa> isas() {
  std::vector<Isa> result;
  for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::avx512_bf16})
    if (isa <= find_instruction_set().isa) result.push_back(isa);
  return result;
}

}  // namespace convoy::cpu
