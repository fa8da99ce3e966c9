// SPDX-License-Identifier: Apache-2.0
// How a run does, how it ended, and whether its job may be submitted again, judged from outside by what it left in its
// run directory. One table (run_status.cpp) has an end of every kind: `convoy status`, the trainer and the job scripts
// ask it.
#pragma once
#include <string>

#include "run/attempt.hpp"
#include "run/run_state.hpp"

namespace convoy {

/// Attempts, or launches, in a row that came to nothing: the job isn't started again.
inline constexpr Index most_lost_attempts = 3;

/// What can be seen of a run beside its state.json.
struct RunObservations {
  enum class Job : std::uint8_t { unknown, waits, runs, gone };

  double now = 0;                        ///< seconds since 1970
  Presence process = Presence::unknown;  ///< rank 0's, if this is its host
  Job job = Job::unknown;                ///< what the scheduler says
  std::string silent;         ///< ranks that stopped or hang, with their hosts and what they did; empty: none
  std::string lost_hosts;     ///< hosts that do not answer; empty: none
  std::string excluded;       ///< hosts that the next attempt must avoid; empty: none
  Index lost_attempts = 0;    ///< attempts since the newest durable checkpoint
  Index restarts = 0;         ///< how often the scheduler's job was submitted again
  Index failed_launches = 0;  ///< launches in a row that began no attempt, the last one included
  int launcher_code = -1;     ///< with which the attempt's launcher ended, as its job script noted; negative: not known
};

/// How a run does in one word. lost: it was killed, or its host is gone, before it could say how it ended.
enum class RunStatus : std::uint8_t { running, hanging, lost, stopped, finished, failed };
const char* name_of(RunStatus status);

/// Is state.json older than rank 0 ever lets it become? By the clock of this host, which may be ahead or
/// behind.
bool is_stale(const RunState& state, double now);

/// Everything that is distinguished, a row of the table each.
enum class RunEnd : std::uint8_t {
  // while no attempt's launcher is known to have ended
  running,
  stopping,  ///< it runs and was asked to stop
  hanging,
  lost,
  queued,  ///< lost, and its job waits to continue
  // as the program said
  finished,
  limited,  ///< by --max-steps and the like
  stopped,
  stopped_before_a_step,       ///< the job's time is too short
  stopped_before_steps_again,  ///< the same in several jobs
  failed,
  miscalculated,  ///< on a host that the next job can leave out
  superseded,
  goes_on_elsewhere,
  // as the launcher's code and the rest tell
  failed_as_a_host_was_lost,
  failed_as_the_launcher_was_killed,
  killed,
  ended_silently,  ///< code 0, but the state does not say how
  launcher_failed,
  // no attempt began
  launch_failed,
  launch_killed,
  launch_killed_again,
  program_failed,  ///< before it had a run directory
  program_killed,
  program_killed_again,
};

RunEnd end_seen(const RunState& state, const RunObservations& seen);

/// The end of an attempt whose launcher ended with `code`. mpirun and srun report deaths in many ways, so the state
/// that the program left counts for more than the code. `state` null: there is none yet.
RunEnd end_after_launch(const RunState* state, const RunObservations& seen, int code);

struct RequeueDecision {
  RunStatus status = RunStatus::failed;
  int exit = 0;      ///< 0: done, 75: submit it again, else: don't
  std::string text;  ///< what happened and why that follows
};

/// What `convoy status` says and leaves with.
RequeueDecision decide(const RunState& state, const RunObservations& seen);

/// What a job script knows of its job besides the run.
struct JobFacts {
  double end = 0;              ///< when the scheduler ends it, seconds since 1970; 0: not known
  double now = 0;              ///< seconds since 1970
  double told_to_end = 0;      ///< when it was told to end, seconds since 1970; 0: it was not
  double notice = 60;          ///< seconds before its end at which the scheduler may tell it so, see notice_of
  bool keeps_nothing = false;  ///< the program keeps nothing of its work if it is stopped
  Index jobs_in_vain = 0;      ///< jobs in a row in which a preparation made no progress, this one included
  Index resubmitted = 0;       ///< how often it has submitted itself
  Index resubmissions = 0;     ///< how often it may
};

/// Slurm sends SIGTERM some time before it ends a job; PBS never acts before the limit, whose start it rounds.
double notice_of(const std::string& scheduler);

/// The code of a job without a run directory, whose launcher ended with `code`: 75 if the program was killed.
int exit_without_run(int code, const JobFacts& job);

struct SubmissionDecision {
  bool again = false;
  std::string text;
};

/// May a job that ends with 75 submit itself?
SubmissionDecision decide_submission(const JobFacts& job);

/// What a job script should do after its launcher ended with `code`. `newer`: an attempt that continues the run in
/// another job; 0: none.
RequeueDecision decide_requeue(const RunState* state, const RunObservations& seen, int code, Index newer = 0);

}  // namespace convoy
