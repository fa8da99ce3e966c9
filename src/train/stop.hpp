// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace convoy {

/// Called before MPI starts, so that a stop asked for during start-up is kept. From here on SIGUSR1 and SIGTERM only
/// set a flag; the other one of the two after it ends the process at once.
void watch_stop_signals();
/// The signal that asked this process to stop; 0 = none.
int stop_signal();

}  // namespace convoy
