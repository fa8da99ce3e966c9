// SPDX-License-Identifier: Apache-2.0
// What the ranks of a job tell each other every step, and hear one step later.
#pragma once
#include "comm/communicator.hpp"
#include "core/stop.hpp"
#include "core/types.hpp"

namespace convoy {

/// One rank's, or what all agreed on.
struct StepVote {
  StopReason stop = StopReason::none;  ///< agreed: the weightiest
  bool save = false;                   ///< agreed: somebody's
  Index finished_parts = 0;            ///< parts of saves that the writer is through with; agreed: the fewest
  Index superseded_by = 0;             ///< a newer attempt; agreed: the newest. 0: none
};

/// Collective. All ranks call it at the same places; returns what was agreed on at the call before.
inline StepVote agree_later(Communicator& communicator, const StepVote& own) {
  const Votes agreed = communicator.agree_later(
      {static_cast<std::int64_t>(own.stop), own.save ? 1 : 0, -own.finished_parts, own.superseded_by});
  return {.stop = static_cast<StopReason>(agreed[0]),
          .save = agreed[1] != 0,
          .finished_parts = -agreed[2],
          .superseded_by = agreed[3]};
}

}  // namespace convoy
