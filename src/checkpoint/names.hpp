// SPDX-License-Identifier: Apache-2.0
// Names of a checkpoint's files: NAME.h5 and, per replica, NAME.shard-RRRR.h5 or NAME.shard-RRRR.b.h5.
#pragma once
#include <string>
#include <vector>

#include "checkpoint/file.hpp"

namespace convoy {

/// Infix of the second of the two names that shards of a checkpoint take in turn.
inline const std::string second_generation = ".b";

std::string main_path(const std::string& folder, const std::string& name);
std::string shard_file(const std::string& name, int replica, const std::string& generation);
/// File names, sorted; empty where there is no such folder. Throws Error(data) where it can't be read.
std::vector<std::string> list_folder(const std::string& folder);
/// File names of the shards of a checkpoint, of both generations and any save.
std::vector<std::string> list_shards(const std::string& folder, const std::string& name);
bool is_second_generation(const std::string& shard_file);
/// Removes the shards of a checkpoint but those named in `keep`.
void remove_shards(const std::string& folder, const std::string& name, const std::vector<ShardRecord>& keep);

}  // namespace convoy
