// SPDX-License-Identifier: Apache-2.0
// RUN_DIR/excluded-hosts: hosts that a run is to be kept away from, a line each: host, attempt that found it, why;
// between tabs. Job scripts read the first word of each line.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace convoy {

struct ExcludedHost {
  std::string host;
  Index attempt = 0;
  std::string reason;
};

std::string excluded_hosts_path(const std::string& run_folder);

/// Adds the hosts of these ranks that the file lacks. A file that can't be written is said in a warning.
void exclude_hosts(const std::string& run_folder, Index attempt, const std::vector<std::string>& host_of_rank,
                   std::span<const int> ranks, const std::string& reason);

/// Empty where there is no such file.
std::vector<ExcludedHost> read_excluded_hosts(const std::string& run_folder);

}  // namespace convoy
