// SPDX-License-Identifier: Apache-2.0
// FLOP and bytes of a pass, from what the schedule says that it reads and writes.
#pragma once
#include <vector>

#include "backend/cpu/program_parts.hpp"

namespace convoy::cpu {

struct PassCost {
  double flops = 0, bytes = 0;  ///< as ProgramPart's
};

/// `shapes`: of the nodes, for one sample.
PassCost cost_of(const ProgramParts& parts, const PassPlan& pass, const std::vector<Shape>& shapes);

/// Bytes of a stored tensor of the whole batch.
Index bytes_of(const ProgramParts& parts, const StoredTensor& tensor);

}  // namespace convoy::cpu
