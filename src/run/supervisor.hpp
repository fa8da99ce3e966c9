// SPDX-License-Identifier: Apache-2.0
// What goes on beside the main thread: heartbeats of this rank, a look at those of the others while it waits for them,
// and the watchdog. One for the process, like the log.
#pragma once
#include <string>

#include "comm/communicator.hpp"

namespace convoy {

/// Collective. Starts the watchdog and lets `communicator` name missing ranks by their heartbeats. Heartbeats go to the
/// memory of each host (/dev/shm), so that ranks of one host know of each other, until a folder is given.
void start_watch(Communicator& communicator, const StallLimits& deadline);

/// Collective. From now on heartbeats go to FOLDER/heartbeats, which all hosts see. Where that can't be written the run
/// goes on without, and says so once.
void write_heartbeats_to(Communicator& communicator, const std::string& folder);

/// Leaves the last heartbeat, which tells that and how this rank left. Waits a moment at most.
void end_watch(Exit code);

}  // namespace convoy
