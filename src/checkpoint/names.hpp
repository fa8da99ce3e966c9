// SPDX-License-Identifier: Apache-2.0
// Names of a checkpoint's files: NAME.h5 and, per replica, NAME.shard-RRRR.aNNNN.h5, NNNN being the attempt.
#pragma once
#include <string>
#include <vector>

#include "checkpoint/fence.hpp"
#include "checkpoint/file.hpp"

namespace convoy {

std::string main_path(const std::string& folder, const std::string& name);
std::string shard_file(const std::string& name, int replica, Index attempt);
/// File names, sorted; empty where there is no such folder. Throws Error(data) where it can't be read.
std::vector<std::string> list_folder(const std::string& folder);
/// File names of the shards of a checkpoint, of all attempts and any save.
std::vector<std::string> list_shards(const std::string& folder, const std::string& name);
/// Removes the shards of a checkpoint but those named in `keep`. Throws Error(superseded).
void remove_shards(const std::string& folder, const std::string& name, const std::vector<ShardRecord>& keep,
                   const Fence& fence);

}  // namespace convoy
