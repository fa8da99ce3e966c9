// SPDX-License-Identifier: Apache-2.0
// Options, machine and program of runs, where they aren't the same.
#pragma once
#include <string>
#include <vector>

#include "report/run_record.hpp"

namespace convoy {

struct Difference {
  std::string name;
  std::vector<std::string> values;  ///< of each run; `-`: it has none
};

/// Options, those that were not given included, in the order of the first run's file.
std::vector<Difference> compare_options(const std::vector<RunRecord>& runs);
/// What a run computed on and with: ranks, devices, hosts, build, libraries.
std::vector<Difference> compare_environment(const std::vector<RunRecord>& runs);

}  // namespace convoy
