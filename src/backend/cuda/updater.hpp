// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "backend/backend.hpp"
#include "backend/cuda/context.hpp"

namespace convoy::cuda {

/// Updater::arena_floats() of it.
Index updater_floats(const Plan& plan, const OptimiserSpec& spec);

/// Copies what it needs of the plan.
std::unique_ptr<Updater> make_updater(const Context& context, const Plan& plan, const OptimiserSpec& spec);

}  // namespace convoy::cuda
