// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint.hpp"

#include <filesystem>

#include "checkpoint/file.hpp"

namespace convoy {
namespace fs = std::filesystem;
Checkpoint load_checkpoint(const std::string& path, const Plan& plan, const SetLayout& layout, const LoadSpec& spec) {
  SetFile file = read_set_file(path, plan, layout, spec.weights_only ? Content::weights : Content::all);
  Checkpoint checkpoint{path, std::move(file.meta.meta), std::move(file.set), {}};
  if (spec.weights_only) {
    checkpoint.meta.position = {};
    return checkpoint;
  }
  if (!spec.shards) return checkpoint;
  for (const ShardRecord& record : file.meta.shards) {
    if (record.replica < spec.first_replica || record.replica >= spec.first_replica + spec.replica_count) continue;
    const std::string shard_path = (fs::path(path).parent_path() / record.file).string();
    if (seal_digest(shard_path) != record.seal)
      fail(Exit::data, "shard '{}' doesn't belong to '{}' (it is of another save); resume from another checkpoint",
           shard_path, path);
    SetFile shard = read_set_file(shard_path, plan, layout, Content::all);
    checkpoint.shards.push_back({record.replica, record.samples_since_average, std::move(shard.set)});
  }
  return checkpoint;
}

CheckpointMeta load_checkpoint_meta(const std::string& path) { return read_file_meta(path).meta; }

}  // namespace convoy
