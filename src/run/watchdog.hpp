// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "core/clock.hpp"
#include "core/progress.hpp"

namespace convoy {

struct WatchdogLimits {
  double seconds = 0;       ///< 0: off
  double warn_seconds = 0;  ///< 0: never
};

/// What a look at the main thread comes to.
enum class WatchdogAction : std::uint8_t {
  none,
  warn,   ///< it has not moved for warn_seconds; once until it moves again
  stuck,  ///< the process ends with Exit::communication
  leave,  ///< it said that it leaves and did not: the process ends with its code
};

/// Judges whether a main thread is stuck. One that for `seconds` neither marked progress nor used its core is stuck in
/// a system call or a driver; ten times as long counts too if it does use its core. Waits under a deadline mark
/// progress, so they are left to it. A process that was stopped and continued starts anew. One that leaves with an
/// error (Progress::leave) has 15 s: MPI_Abort may hang too.
class StallJudge {
 public:
  StallJudge(const WatchdogLimits& limits, Instant now, double cpu_seconds, const ProgressSnapshot& at);

  /// Seconds until the next look.
  double tick() const { return tick_; }
  WatchdogAction look(Instant now, double cpu_seconds, const ProgressSnapshot& at);
  /// Seconds without progress, as of the last look.
  double quiet_seconds() const { return quiet_; }

 private:
  const WatchdogLimits limits_;
  const double tick_;
  Instant looked_, moved_, alive_;
  double cpu_seconds_, quiet_ = 0;
  std::uint64_t marks_;
  bool warned_ = false;
};

/// `error: no progress for 61.2 s in phase data, epoch 1, step 20 (read of '/data/x.h5' for 61.1 s; main thread in
/// state D); REMEDY` and the end of the line. Allocates nothing. Returns the length.
int describe_stall(char* to, std::size_t capacity, const char* level, double seconds, const ProgressSnapshot& at,
                   char thread_state, const char* remedy);

/// Watches the main thread, which calls this, from a thread of its own until the process ends, MPI_Finalize included.
/// Says so on stderr if it is stuck, and ends this process alone. That thread touches no file but /proc and no lock:
/// those may be what the main thread is stuck in. `progress` must live as long as the process. Lines begin with
/// `prefix`: `[rank 3/16 gpu-07] `.
void start_watchdog(const WatchdogLimits& limits, Progress& progress, const std::string& prefix);

}  // namespace convoy
