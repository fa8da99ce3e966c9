// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint.hpp"

#include <algorithm>
#include <filesystem>

#include "checkpoint/agree.hpp"
#include "checkpoint/file.hpp"
#include "checkpoint/names.hpp"

namespace convoy {
namespace fs = std::filesystem;
namespace {
std::string make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    fail(Exit::data, "cannot make the checkpoint folder '{}' ({}); give --checkpoint-dir a writable path", folder,
         error.message());
  return {};
}

/// The shards of the checkpoint that is in place stay until the new main file is: new ones take the other of two names.
std::string free_generation(const std::string& folder, const std::string& name) {
  const std::vector<std::string> shards = list_shards(folder, name);
  const auto second = std::count_if(shards.begin(), shards.end(), is_second_generation);
  if (second == static_cast<std::ptrdiff_t>(shards.size())) return {};
  if (second == 0) return second_generation;
  // Both are there: a save was killed. Those that the main file doesn't name are left-overs.
  const std::string main = main_path(folder, name);
  if (!fs::exists(main) || !find_damage(main).empty()) return {};
  const FileMeta old = read_file_meta(main);
  const bool second_in_use = std::any_of(old.shards.begin(), old.shards.end(),
                                         [](const ShardRecord& shard) { return is_second_generation(shard.file); });
  return second_in_use ? std::string() : second_generation;
}

/// Rank 0 must see every shard as its writer left it, or the set could never be loaded.
void check_shards(const std::string& folder, int replicas, const std::vector<ShardRecord>& shards) {
  require(shards.empty() || static_cast<int>(shards.size()) == replicas, "shards of some replicas only");
  if (!shards.empty()) list_folder(folder);  // opening the folder makes NFS look again for files it has seen missing
  for (const ShardRecord& shard : shards) {
    const std::string path = folder + "/" + shard.file;
    if (seal_digest(path) != shard.seal)
      fail(Exit::data,
           "shard '{}' has other contents than replica {} wrote (two jobs in one folder?); give each job "
           "its own --checkpoint-dir",
           path, shard.replica);
  }
}
}  // namespace

void save_checkpoint(Communicator& communicator, const std::string& folder, const std::string& name, const Plan& plan,
                     const SetLayout& layout, const CheckpointMeta& meta, const HostSet& averaged,
                     const std::vector<Shard>& shards, const Fence& fence) {
  const bool root = communicator.rank() == 0;
  const std::string path = main_path(folder, name);
  const std::string generation = agree(communicator, "preparing a checkpoint", [&] {
    if (!root) return std::string();
    make_folder(folder);
    return free_generation(folder, name);
  })[0];

  const auto written = agree(communicator, "writing checkpoint shards", [&] {
    std::vector<ShardRecord> records;
    for (const Shard& shard : shards) {
      const std::string file = shard_file(name, shard.replica, generation);
      const std::string shard_path = folder + "/" + file;
      write_set_file(shard_path, plan, layout, {meta, plan.graph.model, {}, shard.replica}, shard.set, fence);
      records.push_back({shard.replica, shard.samples_since_average, file, seal_digest(shard_path)});
    }
    return to_text(records);
  });

  agree(communicator, "writing a checkpoint", [&] {
    if (!root) return std::string();
    FileMeta file{meta, plan.graph.model, {}, -1};
    for (const std::string& text : written)
      for (const ShardRecord& record : parse_shards(text)) file.shards.push_back(record);
    std::sort(file.shards.begin(), file.shards.end(),
              [](const ShardRecord& a, const ShardRecord& b) { return a.replica < b.replica; });
    check_shards(folder, meta.replicas, file.shards);
    write_set_file(path, plan, layout, file, averaged, fence);
    remove_shards(folder, name, file.shards);
    return std::string();
  });
}

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
