// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace convoy {

struct WatchdogSpec {
  double seconds = 0;       ///< 0: off
  double warn_seconds = 0;  ///< 0: never
  std::string speaker;      ///< `[rank 3/16 gpu-07] `
};

/// Watches the main thread, which calls this, from a thread of its own until the process ends, MPI_Finalize included;
/// a later call changes the limits. A main thread that for `seconds` neither moved its pulse nor used its core is stuck
/// in a system call or a driver (ten times as long counts too where it does use its core): one line on stderr, and
/// _exit(5) of this process alone. Waits under a deadline move the pulse, so they are left to it. A process that was
/// stopped and continued starts anew. A process that leaves with an error (Pulse::leave) and is still there after 15 s
/// is ended with that code: MPI_Abort may hang too. Touches no file and no lock: those may be what the main thread is
/// stuck in.
void start_watchdog(const WatchdogSpec& spec);

}  // namespace convoy
