// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cuda/lowering/recipe.hpp"
#include "backend/liveness.hpp"

namespace convoy::cuda {

/// Where a recipe's buffers lie: those that no step needs at once share memory.
Placement plan_memory(const Recipe& recipe);

}  // namespace convoy::cuda
