// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "train/run_health.hpp"

namespace convoy {

/// Everything that `convoy status` knows of a run.
struct RunReport {
  std::string folder;
  RunState state;
  Signs signs;
};

/// Lines for people, as of report.signs.now.
std::string status_text(const RunReport& report);
/// The state's own fields and `life`, `silent`, `lost_attempts`.
std::string status_json(const RunReport& report);

}  // namespace convoy
