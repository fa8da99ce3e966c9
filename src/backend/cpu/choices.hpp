// SPDX-License-Identifier: Apache-2.0
// Which kernels a phase uses. By rule: from shapes alone, so that every rank of a kind chooses alike and nothing is
// timed. The text form is kept in checkpoints: `tile 4 direct winograd direct; whole ...`, one phase after another.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/phase.hpp"

namespace convoy::cpu {

/// The one word of CompileSpec::options: direct kernels only, half the rounding error and slower.
inline constexpr std::string_view no_winograd = "no-winograd";

PhaseChoice choose_by_rule(const ProgramParts& parts, const PhasePlan& plan);
/// What measuring tries, the rule's choice first.
std::vector<PhaseChoice> candidates_of(const ProgramParts& parts, const PhasePlan& plan);
/// Phases of equal signature are equal work: they are timed once.
std::string signature_of(const ProgramParts& parts, const PhasePlan& plan);

std::string write_choices(const std::vector<PhaseChoice>& choices);
/// Throws Error(usage) unless `text` has one choice a phase that fits `samples`.
std::vector<PhaseChoice> read_choices(const std::string& text, std::size_t phases, Index samples);

}  // namespace convoy::cpu
