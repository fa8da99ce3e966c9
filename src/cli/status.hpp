// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "train/run_health.hpp"

namespace convoy {

/// Everything that `convoy status` knows of a run.
struct RunReport {
  std::string folder;
  RunState state;
  Signs signs;
};

/// What can be seen from here of a run that has not said how it ended: rank 0's process and its job; else what was
/// lost.
Signs signs_of(const std::string& folder, const RunState& state);

/// Lines for people, as of report.signs.now.
std::string status_text(const RunReport& report);
/// The state's own fields and `life`, `silent`, `lost_hosts`, `lost_attempts`, `now`.
std::string status_json(const RunReport& report);

/// Ranks that have stopped or keep the others waiting, by their heartbeats; empty: none. Where it looks as if one had,
/// it looks again some seconds later.
std::string silent_ranks(const std::string& folder);
/// The same after the end of an attempt: ranks that neither left nor were told to end, so died first or were cut off.
std::string first_dead_ranks(const std::string& folder);
/// Hosts of the newest attempt's ranks that do not answer, comma-separated.
std::string lost_hosts(const std::string& folder);

}  // namespace convoy
