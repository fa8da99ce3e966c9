// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace convoy::preparation {

/// Paths of the files in `folder` that are called like partitions, sorted. Throws Error(data) where it can't be read.
std::vector<std::string> list_partitions(const std::string& folder);

/// `folder` where it holds partitions, else the folders in it that do (a preparation of several sizes), sorted. Throws
/// Error(data) where there are none.
std::vector<std::string> partition_folders(const std::string& folder);

}  // namespace convoy::preparation
