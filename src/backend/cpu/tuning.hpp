// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "backend/cpu/phase.hpp"
#include "backend/liveness.hpp"

namespace convoy::cpu {

/// Times the candidates of each distinct phase in place, in a training step on made-up images, and returns the fastest:
/// one choice a phase. Takes seconds, and memory of its own as large as the program's arena; leaves `parts.norms` bound
/// to memory that is gone.
std::vector<PhaseChoice> choose_by_measuring(const ProgramParts& parts, const Placement& tensors);

/// Vectors of the batch norms whose sums phase `k - 1` completed.
void prepare_norms(const ProgramParts& parts, const NormStep& step, std::size_t k);

}  // namespace convoy::cpu
