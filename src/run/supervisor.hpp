// SPDX-License-Identifier: Apache-2.0
// What goes on beside the main thread of a rank: one thread that touches files (heartbeats, state.json, the search for
// a newer attempt) and the watchdog's, which touches none (docs/adr/0015).
#pragma once
#include <memory>
#include <string>

#include "comm/communicator.hpp"
#include "core/progress.hpp"
#include "run/attempt.hpp"
#include "run/run_state.hpp"
#include "run/state_file.hpp"

namespace convoy {

class Supervisor {
 public:
  /// Collective. Starts the watchdog and lets `communicator` name missing ranks by their heartbeats, which go to the
  /// memory of each host (/dev/shm) until watch_attempt() names a run directory.
  Supervisor(Communicator& communicator, const StallLimits& limits);
  /// Leaves no thread behind, unless a file system hangs.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Collective. Takes the next number in the run directory. If another job seems to be alive there, it waits some
  /// seconds for it to end, then throws Error(usage) on all ranks, unless that is this very job, started again by its
  /// scheduler, or the attempt may take over. Throws AgreedError.
  Attempt& begin_attempt(Communicator& communicator, const AttemptSpec& spec);

  /// Collective. From now on heartbeats go to the run directory, which all hosts see, and rank 0 keeps state.json
  /// there, beginning with `first`. If the folder can't be written the run goes on without heartbeats there. `before`:
  /// what stood there; that of a run that is through comes back if this attempt fails before its first step.
  void watch_attempt(Communicator& communicator, const RunState& first, const RunState& before);

  /// Null on ranks but 0, before watch_attempt() and after end_attempt().
  StateFile* state() const { return state_.get(); }

  /// Records how the attempt ended, in state.json and in attempts/NNNN.end.json, which the first rank that knows
  /// writes. Waits up to 5 s. Does nothing if no attempt has begun. Never throws.
  void end_attempt(Exit code, const std::string& message);

  /// Leaves the last heartbeat, which says that this rank leaves and with which code. Waits up to 1 s. The watchdog
  /// stays.
  void end(Exit code);

 private:
  struct Worker;  ///< outlives this object if its thread hangs in a dead file system

  const int rank_;
  const std::string host_, start_;
  Attempt attempt_;
  std::shared_ptr<StateFile> state_;
  RunState before_;
  std::shared_ptr<Worker> worker_;
};

}  // namespace convoy
