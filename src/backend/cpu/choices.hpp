// SPDX-License-Identifier: Apache-2.0
// Which kernels a pass uses. By rule: from shapes alone, so that every rank of a kind chooses alike and nothing is
// timed. The text form is kept in checkpoints: `tile 4 direct winograd grouped; whole ...`, one pass after another.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/program_parts.hpp"

namespace convoy::cpu {

/// The words of CompileSpec::options. No Winograd: half the rounding error in fp32, and slower.
inline constexpr std::string_view no_winograd = "no-winograd";
/// With precision bf16: Winograd's products in bf16, too. Five times the rounding error of direct kernels, and faster.
inline constexpr std::string_view winograd_bf16 = "winograd-bf16";

PassChoice choose_by_rule(const ProgramParts& parts, const PassPlan& plan);
/// What measuring tries, the rule's choice first.
std::vector<PassChoice> candidates_of(const ProgramParts& parts, const PassPlan& plan);
/// Passes of equal signature are equal work: they are timed once.
std::string signature_of(const ProgramParts& parts, const PassPlan& plan);

/// Algorithm::gemm or direct: the kernel of a weight gradient that no other algorithm takes, in a pass of this choice.
Algorithm direct_or_gemm(const ProgramParts& parts, const PassChoice& choice, const ConvolutionShape& shape);

std::string write_choices(const std::vector<PassChoice>& choices);
/// Throws Error(usage) unless `text` has one choice a pass that fits `samples`.
std::vector<PassChoice> read_choices(const std::string& text, std::size_t passes, Index samples);

}  // namespace convoy::cpu
