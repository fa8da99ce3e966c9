// SPDX-License-Identifier: Apache-2.0
#include "preprocess/partition_folders.hpp"

#include <algorithm>
#include <filesystem>

#include "core/errors.hpp"
#include "data/partition.hpp"

namespace convoy::preparation {
namespace {

namespace fs = std::filesystem;

std::vector<fs::directory_entry> entries_of(const std::string& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code reason;
  for (fs::directory_iterator at(folder, reason), end; !reason && at != end; at.increment(reason))
    entries.push_back(*at);
  if (reason) fail(Exit::data, "cannot open the data folder '{}' ({}); check the path", folder, reason.message());
  return entries;
}

}  // namespace

std::vector<std::string> list_partitions(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : entries_of(folder)) {
    if (parse_partition_name(entry.path().filename().string()).partitions > 0) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> partition_folders(const std::string& folder) {
  if (!list_partitions(folder).empty()) return {folder};
  std::vector<std::string> folders;
  for (const auto& entry : entries_of(folder)) {
    std::error_code ignored;
    if (!entry.is_directory(ignored)) continue;
    const std::string path = entry.path().string();
    if (!list_partitions(path).empty()) folders.push_back(path);
  }
  if (folders.empty()) fail(Exit::data, "'{}' has no partitions (NAME-NNNNN-of-NNNNN.h5); check the path", folder);
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace convoy::preparation
