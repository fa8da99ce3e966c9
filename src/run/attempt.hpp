// SPDX-License-Identifier: Apache-2.0
// One start of a run: who it is, that no other job is at it, and how it ended.
#pragma once
#include <string>
#include <vector>

#include "checkpoint/fence.hpp"
#include "comm/communicator.hpp"
#include "core/clock.hpp"
#include "run/excluded_hosts.hpp"
#include "run/run_state.hpp"

namespace convoy {

struct AttemptSpec {
  std::string run_folder;
  std::string checkpoint_folder;  ///< empty: the run saves nothing
  bool take_over = false;         ///< begins even if another job seems to be alive in the folders
  double wait_seconds = 0;        ///< how long another job that seems to be alive gets to end
};

struct Attempt {
  AttemptRecord record;
  std::vector<std::string> folders;  ///< that are fenced: the run directory, and a checkpoint folder outside it
  HostNames hosts;                   ///< of the ranks
  Fence fence;
  /// Another attempt that was alive when this one started, and has since finished the run; 0: there is none. Known on
  /// all ranks.
  Index waited_for = 0;
};

/// The scheduler's job that this process belongs to, as attempts name it: scheduler, job, restarts.
AttemptRecord own_job();

/// unknown: it can't be seen.
enum class Presence : std::uint8_t { unknown, lives, gone };
/// Is the process of an attempt on this host still there? Another may have got its number since.
Presence presence_of(const AttemptRecord& attempt);

/// If another attempt seems to be alive in `folder`, waits for it to end, then throws Error(usage), unless that is the
/// job of `own`, which its scheduler has started again. Throws Error(stopped). Returns the number of the attempt that
/// it saw alive; 0: there was none.
Index require_alone(const std::string& folder, const AttemptRecord& own, double wait_seconds, Clock& clock);

struct Claim {
  Index number = 0;
  Index waited_for = 0;  ///< the attempt that was alive last, in the first of the folders; 0: none was
};
/// Takes the next number in the folders as soon as nobody else is alive there: of several that waited one gets it, and
/// the others wait for that one. Throws as require_alone does.
Claim claim_alone(const std::vector<std::string>& folders, AttemptRecord own, double wait_seconds, Clock& clock);

/// Collective. Takes the next number in the run directory, alone there unless the attempt may take over. `to` has the
/// number as soon as it is taken. Throws AgreedError.
void begin_attempt(Communicator& communicator, const AttemptSpec& spec, Attempt& to);

/// Collective. Settles which run this attempt continues; empty: a new one.
void settle_run(Communicator& communicator, Attempt& attempt, std::string run);

/// Rank 0 records the checkpoint from which the attempt trains. Throws Error(data).
void record_begin(Attempt& attempt, const std::string& path, Index by_attempt, Index step);

/// Takes that back: the start is refused.
void forget_begin(Attempt& attempt);

/// How an attempt ended, as the first rank that knows says.
struct AttemptEnd {
  int rank = 0;
  std::string host;
  Result result = Result::running;
  Exit code = Exit::ok;
  std::string message = {};  ///< of a failure
};
/// Records it. Does nothing if no attempt has begun. Never throws.
void record_end(const Attempt& attempt, const AttemptEnd& how);

}  // namespace convoy
