// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "run/run_status.hpp"

namespace convoy {

/// Everything that `convoy status` knows of a run.
struct RunReport {
  std::string folder;
  RunState state;
  RunObservations signs;
};

/// What can be seen from here of a run that has not said how it ended: rank 0's process and its job; else what was
/// lost.
RunObservations signs_of(const std::string& folder, const RunState& state);

/// Lines for people, as of report.signs.now.
std::string status_text(const RunReport& report);
/// The state's own fields and `life`, `silent`, `lost_hosts`, `lost_attempts`, `now`.
std::string status_json(const RunReport& report);

}  // namespace convoy
