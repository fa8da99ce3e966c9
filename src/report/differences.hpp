// SPDX-License-Identifier: Apache-2.0
// The options, machines and programs in which runs differ.
#pragma once
#include <string>
#include <vector>

#include "report/run_record.hpp"

namespace convoy {

struct Difference {
  std::string name;
  std::vector<std::string> values;  ///< one per run; `-`: it has none
};

/// Options, given or default, in the order of the first run's file.
std::vector<Difference> compare_options(const std::vector<RunRecord>& runs);
/// Ranks, devices, hosts, build, libraries.
std::vector<Difference> compare_environment(const std::vector<RunRecord>& runs);

}  // namespace convoy
