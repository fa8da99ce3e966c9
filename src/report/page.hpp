// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "report/run_record.hpp"

namespace convoy {

/// One HTML file without outside references and scripts: the runs in one table, their curves in common pictures, where
/// their time went, what they made of the classes, their configuration and what differs between them.
std::string report_page(const std::vector<RunRecord>& runs, const std::string& build);

/// A page of the same look with charts below its title.
std::string chart_page(const std::string& title, const std::string& build, const std::vector<std::string>& charts);

}  // namespace convoy
