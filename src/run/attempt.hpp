// SPDX-License-Identifier: Apache-2.0
// One start of a run: who it is, that no other job is at it, and how it ended.
#pragma once
#include <string>
#include <vector>

#include "checkpoint/fence.hpp"
#include "comm/communicator.hpp"

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
  Fence fence;
};

/// The scheduler's job that this process belongs to, as attempts name it: scheduler, job, restarts.
AttemptRecord own_job();

/// Collective. Takes the next number in the run directory. Where another job seems to be alive there, it waits some
/// seconds for it to end, then throws Error(usage) on all ranks, unless it is this very job, started again by its
/// scheduler, or --take-over is given. Throws AgreedError.
Attempt begin_attempt(Communicator& communicator, const AttemptSpec& spec);

/// Collective. Settles which run this attempt goes on with; empty: a new one.
void settle_run(Communicator& communicator, Attempt& attempt, std::string run);

/// How this process's attempt ended, said once by the first rank that knows. Nothing where no attempt has begun. Never
/// throws.
void record_end(Exit code, const std::string& message);

}  // namespace convoy
