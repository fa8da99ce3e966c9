// SPDX-License-Identifier: Apache-2.0
// Which steps leave the row of launches and run beside it, in a second stream: weight gradients, which nothing reads
// before their stage ends. Where tensors are small, a launch takes longer to begin than to work.
#pragma once
#include <vector>

#include "backend/cuda/lowering/execution_plan.hpp"

namespace convoy::cuda {

/// Sets Step::beside and Step::waits. A step stays in the row if one behind it touches what it writes, or writes what
/// it reads, before the last step of the stage.
void choose_beside(ExecutionPlan& execution);
/// Extends the lifetimes of the buffers of each step beside the row: from the first row step it may overlap to the end
/// of its stage.
void extend_lifetimes(const ExecutionPlan& execution, std::vector<lowering::Lifetime>& lifetimes);

}  // namespace convoy::cuda
