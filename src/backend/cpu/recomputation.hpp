// SPDX-License-Identifier: Apache-2.0
// Blocks of a schedule that run forward a second time (backend/lowering/recompute.hpp).
#pragma once
#include <vector>

#include "backend/cpu/program_parts.hpp"
#include "backend/lowering/recompute.hpp"

namespace convoy::cpu {

/// The blocks of a training program; their steps are instructions of `schedule`, counted over all passes.
std::vector<lowering::RepeatedBlock> find_blocks(const ProgramParts& parts, const Schedule& schedule);

/// The schedule with passes that run the blocks' instructions again, each block's in front of the first pass that reads
/// what it makes.
Schedule repeat_blocks(const Schedule& schedule, const std::vector<lowering::RepeatedBlock>& blocks);

}  // namespace convoy::cpu
