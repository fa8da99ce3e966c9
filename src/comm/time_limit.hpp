// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/communicator.hpp"
#include "core/wall_clock.hpp"

namespace convoy {

/// When this job will be ended, as all ranks keep it.
struct KeptLimit {
  double end_time = 0;  ///< seconds since 1970; 0: none
  double margin_seconds = 0;

  /// From now on the stop comes early enough for so many seconds of work after it: the last checkpoint, the running
  /// step.
  void reserve(double seconds) const;
};

/// Collective. Rank 0 asks options and scheduler, says what it found, and all ranks stop at that time by their own
/// clocks. The margin is at most a quarter of the time that is left.
KeptLimit keep_time_limit(Communicator& communicator, const TimeLimit& limit);

}  // namespace convoy
