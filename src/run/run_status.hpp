// SPDX-License-Identifier: Apache-2.0
// How a run does and what should come next, judged from outside by what it left in its run directory.
#pragma once
#include <string>

#include "run/run_state.hpp"

namespace convoy {

/// Attempts, or launches, in a row that came to nothing: the job isn't started again.
inline constexpr Index most_lost_attempts = 3;

/// What can be seen of a run beside its state.json.
struct RunObservations {
  enum class Process : std::uint8_t { unknown, lives, gone };
  enum class Job : std::uint8_t { unknown, waits, runs, gone };

  double now = 0;                      ///< seconds since 1970
  Process process = Process::unknown;  ///< rank 0's, where this is its host
  Job job = Job::unknown;              ///< what the scheduler says
  std::string silent;                  ///< ranks that stopped or hang, with their hosts and what they did; empty: none
  std::string lost_hosts;              ///< that do not answer; empty: none
  Index lost_attempts = 0;             ///< started since the newest durable checkpoint
  Index restarts = 0;                  ///< of the scheduler's job
  Index failed_launches = 0;           ///< in a row, the last one included: no attempt began
};

/// lost: it was killed, or its host is gone, before it could say how it ended.
enum class RunStatus : std::uint8_t { running, hanging, lost, stopped, finished, failed };
const char* name_of(RunStatus life);

/// Has the file not been written for longer than rank 0 ever takes? By the clock of this host, which may go ahead.
bool is_stale(const RunState& state, double now);

RunStatus status_of(const RunState& state, const RunObservations& signs);

/// What `convoy status` leaves with: 0 running or finished, 5 hanging, 75 stopped or lost (submit it again), else the
/// code with which it failed.
Exit exit_of(RunStatus life, const RunState& state);

struct RequeueDecision {
  int exit = 0;      ///< 0: done, 75: submit it again, else: don't
  std::string text;  ///< why
};

/// What a job script should do after its launcher ended with `code`. mpirun and srun report deaths in many ways, so the
/// state that the program left counts for more than the code. `state` null: there is none yet.
RequeueDecision decide_requeue(const RunState* state, const RunObservations& signs, int code);

}  // namespace convoy
