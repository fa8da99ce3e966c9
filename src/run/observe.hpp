// SPDX-License-Identifier: Apache-2.0
// What can be seen of a run from outside, on any machine that sees its run directory.
#pragma once
#include <string>

#include "run/run_status.hpp"

namespace convoy {

/// What state.json and attempts/ tell, and, if the run has not said how it ended, rank 0's process on this host and the
/// scheduler.
RunObservations observe(const std::string& run_folder, const RunState& state);

/// The same, and the ranks and hosts that are silent. If rank 0 seems to be silent, this looks again some seconds
/// later, which may bring a newer `state`.
RunObservations observe_closely(const std::string& run_folder, RunState& state);

/// For job scripts: what follows now that the launcher has ended with `code`, so that nothing of the attempt is alive.
/// `attempts_before`: the newest attempt when the launcher was started; negative: not known. Counts launches in a row
/// that began no attempt, in a file of the run directory.
RequeueDecision decide_after_launch(const std::string& run_folder, int code, Index attempts_before);

/// For job scripts: jobs in a row that made no partition in `folder`, this one included, which made `made`. The count
/// is in a file of the folder, and begins anew with a job that no other submitted. 0 if `folder` is empty.
Index count_jobs_in_vain(const std::string& folder, Index made);

}  // namespace convoy
