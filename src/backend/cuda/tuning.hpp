// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "backend/cuda/context.hpp"
#include "backend/cuda/lowering/execution_plan.hpp"

namespace convoy::cuda {

/// Times engines of every graph in use, then ways of fusing, on the device at hand, and returns the fastest as choices
/// (CompileSpec::choices). Equal graphs are timed once. Takes seconds, and memory of its own for that time; set-up
/// only. Throws Error(device) where the memory isn't there.
std::string choose_by_measuring(const Context& context, const ExecutionSpec& spec);

}  // namespace convoy::cuda
