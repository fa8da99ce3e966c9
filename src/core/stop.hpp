// SPDX-License-Identifier: Apache-2.0
// Who asked this process to stop: a signal, or the wall clock. Work that lasts looks here between its pieces.
#pragma once
#include <cstdint>
#include <string>

namespace convoy {

/// Ordered by weight: if ranks see different reasons, the highest is the job's.
enum class StopReason : std::uint8_t { none, time_limit, usr1, interrupt, term };
/// `SIGUSR1`, `SIGINT`, `SIGTERM`, `time limit`; empty for none.
const char* name_of(StopReason reason);

/// Called before MPI starts, so that a stop asked for during start-up is kept. From here on SIGUSR1 and SIGTERM set a
/// flag; another one more than two seconds later ends the process at once. (mpirun and Slurm send the same signal twice
/// to some ranks, and Slurm may send both kinds in one tick of its clock.)
void watch_stop_signals();
/// For work that looks at stop_reason(): from here on SIGINT (Ctrl-C) asks too, unless it was ignored at the start; a
/// second one ends the process at once. Rank 0 says on stderr when it gets the first signal of any kind: its name and
/// `then` (`stopping after this step`).
void heed_interrupts(int rank, const std::string& then);
/// From this time on (seconds since 1970, this host's clock) stop_reason() says time_limit; 0: never.
void set_stop_time(double seconds);
StopReason stop_reason();
/// The first signal that came; 0: none.
int stop_signal();
/// `SIGTERM` of one of these signals.
const char* name_of_stop_signal(int signal);

/// Throws Error(stopped) where somebody asked. `what` was interrupted: `loading the samples`.
void leave_if_stopped(const char* what);

}  // namespace convoy
