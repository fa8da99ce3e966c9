// SPDX-License-Identifier: Apache-2.0
// Files that users name for tables and pages, which replace what was there.
#pragma once
#include <string>
#include <vector>

namespace convoy {

/// Throws Error(usage) if --OPTION names no file (a pipe or device, which a file would replace), or one of the files
/// that the command reads or writes besides. An empty path is none.
void check_output(const std::string& option, const std::string& path, const std::vector<std::string>& others = {});

/// What to write so that a link stays one: its target.
std::string link_target(const std::string& path);

}  // namespace convoy
