// SPDX-License-Identifier: Apache-2.0
// The stages of a program: after which of its steps a range of the gradient block is given away. `end` counts steps (a
// backend's own unit: passes or launches): after the first `end` steps.
#pragma once
#include <vector>

#include "backend/backend.hpp"
#include "backend/lowering/lowering.hpp"

namespace convoy::lowering {

/// A stage holds the steps up to (not including) `end`, then comes its row of Program::stages().
struct Stage {
  std::size_t end = 0;
  ReadyRange ready;
};

/// The gradients of a row of the parameter table are complete.
struct FinalRow {
  std::size_t end = 0;
  int row = 0;
};

/// The next step needs the sum over all ranks of this range.
struct Exchange {
  std::size_t end = 0;
  Range range;
};

/// Stages of a training program. `exchanges` stand in order of `end`; sums of one end are waited for once.
std::vector<Stage> make_stages(const Plan& plan, std::size_t steps, const std::vector<FinalRow>& finals,
                               const std::vector<Exchange>& exchanges);

/// The parts of the gradient block that no step of a training program writes: alignment, parameters that the loss
/// doesn't depend on, flags of other replicas.
std::vector<Range> find_gaps(const Plan& plan, const Lowering& lowering, const std::vector<FinalRow>& finals);

/// A norm's parts of the exchange area. A vector has align_floats(channels).
struct ExchangeRanges {
  Range forward;   ///< sum and sum of squares, each in exchanged_parts vectors
  Range backward;  ///< dbeta, dgamma
};
/// For each norm of the lowering.
std::vector<ExchangeRanges> exchange_ranges(const Plan& plan, const Lowering& lowering);

}  // namespace convoy::lowering
