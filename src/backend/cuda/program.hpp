// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "backend/backend.hpp"
#include "backend/cuda/context.hpp"

namespace convoy::cuda {

/// Copies what it needs of the plan; touches no device. Throws Error(device) for what isn't possible.
std::unique_ptr<Program> make_program(const Context& context, const Plan& plan, const CompileSpec& spec);

/// The table of the program that would run on a card that is only described, for `convoy inspect plan`. `library`:
/// cuDNN for that card.
std::string describe_program(Library& library, const Plan& plan, const CompileSpec& spec);
/// Program::arena_floats() of it.
Index program_arena_floats(Library& library, const Plan& plan, const CompileSpec& spec);

}  // namespace convoy::cuda
