// SPDX-License-Identifier: Apache-2.0
// Blocks of a training program that run forward a second time (backend/lowering/recompute.hpp).
#pragma once
#include "backend/cuda/lowering/execution_plan.hpp"

namespace convoy::cuda {

/// Inserts steps that run blocks again, and gives the buffers their places. `limit`: bytes that they should not exceed,
/// for Recompute::automatic. `streams`: as of PlanBuilder::finish(); steps beside the row are chosen anew.
void recompute_and_place(ExecutionPlan& execution, Recompute wanted, Index limit, Streams streams);

}  // namespace convoy::cuda
