// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "data/dataset.hpp"

namespace convoy {

/// Copies the partitions that `range` meets into a folder of this host, below `folder`, and makes `info` name the
/// copies. A copy appears under its name when it is whole and verified: its seal and every sample's CRC. Processes that
/// need the same partition copy it once; a later run finds it. Throws Error(data) naming what is damaged, Error(usage)
/// where the folder has no room, Error(stopped) if this process is asked to stop.
void stage_partitions(DatasetInfo& info, Range range, const std::string& folder);

/// `folder`, else convoy-data-UID in TMPDIR, else in /tmp: users who share that folder have copies of their own.
std::string stage_folder(const std::string& folder);

}  // namespace convoy
