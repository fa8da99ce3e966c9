// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "backend/cpu/program_parts.hpp"
#include "backend/lowering/memory_plan.hpp"

namespace convoy::cpu {

/// Times the candidates of each distinct pass in place, in a training step on made-up images, and returns the fastest:
/// one choice a pass. Takes seconds, and memory of its own as large as the program's arena; leaves `parts.norms` bound
/// to memory that is gone.
std::vector<PassChoice> choose_by_measuring(const ProgramParts& parts, const lowering::Placement& tensors);

/// Vectors of the batch norms whose sums pass `k - 1` completed.
void prepare_norms(const ProgramParts& parts, const NormStep& step, std::size_t k);

}  // namespace convoy::cpu
