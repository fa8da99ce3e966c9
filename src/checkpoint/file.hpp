// SPDX-License-Identifier: Apache-2.0
// One checkpoint file: names of its tensors, its meta text, writing and reading. Knows nothing of ranks and folders.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/fence.hpp"

namespace convoy {

/// Version 2 has a moving average of the weights beside what version 1 has: a program that knows none must not go on
/// without it. Version 3 is a shard that lacks the parameters, which its main file has. Version 4 has the state of an
/// outer optimiser, and maybe a moving average. Version 5 has residuals of compressed gradients (a shard, and nothing
/// else) or belongs to such shards, and maybe has a moving average. All others are of version 1.
constexpr Index oldest_checkpoint_version = 1, ema_checkpoint_version = 2, slim_shard_version = 3,
                outer_checkpoint_version = 4, residual_checkpoint_version = 5,
                newest_checkpoint_version = residual_checkpoint_version;

/// A tensor of a set: its name in the file and its place in the block.
struct StoredTensor {
  std::string
      name;  ///< `/parameters/conv1.weight`, `/optimiser/0/conv1.weight`, `/statistics/bn1.running_mean`, `/state`
  std::vector<Index> extent;
  Range range;  ///< of the block
};
/// Every tensor of a set. The file is canonical: table order and padding of the block don't show in it.
std::vector<StoredTensor> stored_tensors(const Plan& plan, const SetLayout& layout);
/// Those of the moving average: `/ema/parameters/conv1.weight`, `/ema/statistics/bn1.running_mean`.
std::vector<StoredTensor> stored_ema(const Plan& plan, const SetLayout& layout);
/// Those of the outer optimiser, as OuterLayout: `/outer/anchor/conv1.weight`, `/outer/momentum/conv1.weight`.
std::vector<StoredTensor> stored_outer(const Plan& plan, const SetLayout& layout);

/// Of compressed gradients: the residuals of a replica, `/residual/conv1.weight`, and what all ranks share,
/// `/basis/conv1.weight`, a row for each rank; both laid out as CompressionLayout.
std::vector<StoredTensor> stored_residuals(const Plan& plan, const CompressionSpec& spec);
std::vector<StoredTensor> stored_bases(const Plan& plan, const CompressionSpec& spec);

/// Identifies the sealed bytes of a file without reading them all: CRC of the user block. Throws Error(data).
std::uint32_t seal_digest(const std::string& path);

/// What a file holds. `ema`: the moving average of the weights if meta has its decay, else null; `outer`: if meta has
/// has_outer, else null; `compressed`: if meta has a compression, else null: the bases, or a shard's residuals, which
/// are all that it holds.
struct FileSets {
  const HostSet& set;
  const HostSet* ema = nullptr;
  const HostSet* outer = nullptr;
  const HostSet* compressed = nullptr;
};
/// Writes, seals, flushes, reads everything back, renames within the fence. On an error the temporary file is gone and
/// `path` is as before.
void write_set_file(const std::string& path, const Plan& plan, const SetLayout& layout, const FileMeta& meta,
                    const FileSets& sets, const Fence& fence = {}, const std::function<void()>& before_rename = {});

enum class Content : std::uint8_t { all, weights, trained_weights };
struct SetFile {
  FileMeta meta;
  HostSet set;
  HostSet ema;              ///< Content::all: its optimiser and device state are zero; empty: the file has none
  HostSet outer;            ///< Content::all, as OuterLayout; empty: the file has none
  HostSet compressed = {};  ///< Content::all: the bases of a main file, the residuals of a shard; empty: it has none
  std::vector<std::string> unread = {};  ///< names as StoredTensor::name; zero in the set
};
/// Checks seal, version and every tensor's name and shape. Throws Error(data) with the first difference. With
/// Content::weights the set is the moving average if the file has one, with Content::trained_weights never; in both,
/// optimiser and device state are zero. Values that are in the main file are zero, too. `replica`: whose shard is
/// wanted; -1: a main file, and a shard is an error.
SetFile read_set_file(const std::string& path, const Plan& plan, const SetLayout& layout, Content content,
                      Head head = Head::must_fit, int replica = -1);
/// Checks the seal first; of a main file or a shard. Throws Error(data).
FileMeta read_file_meta(const std::string& path);
/// Of a file whose seal has been checked. Throws Error(data) for one that is no checkpoint of this version.
FileMeta read_whole_meta(const std::string& path);
/// The same, and throws Error(data) for a shard.
FileMeta read_main_meta(const std::string& path);
/// By the file's first bytes alone: no proof that the rest is whole. Throws Error(data).
Stamp peek(const std::string& path);

/// Reads main file and shards completely. Returns an empty text, or what is damaged or torn. Throws Error(data) for a
/// whole file that is no checkpoint of this version.
std::string find_damage(const std::string& path);
/// The shard's path. `main`: that of the main file that names it.
std::string shard_path(const std::string& main, const ShardRecord& shard);
/// As find_damage, of one shard.
std::string find_damage(const std::string& main, const ShardRecord& shard);

}  // namespace convoy
