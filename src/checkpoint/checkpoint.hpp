// SPDX-License-Identifier: Apache-2.0
// Checkpoints: sealed HDF5, written under a temporary name, verified, renamed. docs/checkpoints.md has the layout.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "checkpoint/fence.hpp"
#include "checkpoint/meta.hpp"
#include "comm/communicator.hpp"
#include "core/weight_choice.hpp"
#include "network/plan.hpp"

namespace convoy {

/// A set in host memory, laid out as SetLayout.
struct HostSet {
  Index first = 0;  ///< of the set's floats, block[0]; what precedes it is left out
  std::vector<float> block;
};

/// One replica's own set in the middle of a local-SGD period, or what it has not sent of its gradients.
struct Shard {
  int replica = 0;
  Index samples_since_average = 0;
  HostSet set;  ///< to be saved: without its values (from SetLayout::optimiser on) where they are those of the average
  HostSet residual = {};  ///< of compressed gradients, as CompressionLayout; then there is no set
};

struct Checkpoint {
  std::string path;
  CheckpointMeta meta;
  HostSet set = {};                      ///< in this plan's layout
  HostSet ema = {};                      ///< the moving average: values and statistics; empty: there is none
  HostSet outer = {};                    ///< the outer optimiser's state, as OuterLayout; empty: there is none
  HostSet bases = {};                    ///< of compressed gradients, as CompressionLayout; empty: there are none
  std::vector<Shard> shards = {};        ///< those of the wanted replicas
  std::vector<std::string> unread = {};  ///< parameters that the set lacks: of a head that wasn't read
};

/// The last linear layer. where_it_fits: one for another number of classes isn't read; left_out: none is.
enum class Head : std::uint8_t { must_fit, where_it_fits, left_out };

struct LoadSpec {
  /// Parameters and running statistics by name; optimiser and position left at start.
  bool weights_only = false;
  WeightChoice choice = WeightChoice::usual;  ///< with weights_only; average: the file has one
  Head head = Head::must_fit;                 ///< others only with weights_only
  bool shards = true;
  int first_replica = 0, replica_count = 0;  ///< whose shards to read
};

/// `FOLDER/NAME.h5`.
std::string main_path(const std::string& folder, const std::string& name);
/// `NAME.shard-0003.a0002`, of replica 3 and attempt 2: not .h5, so that `*.h5` names whole checkpoints only. Shards of
/// older versions end in .h5.
std::string shard_file(const std::string& name, int replica, Index attempt);
/// File names, sorted; empty if there is no such folder. Throws Error(data) if it can't be read.
std::vector<std::string> list_folder(const std::string& folder);
/// Removes the shards of a checkpoint, of all attempts and any save, but those named in `keep`. Throws
/// Error(superseded).
void remove_shards(const std::string& folder, const std::string& name, const std::vector<ShardRecord>& keep,
                   const Fence& fence);

/// A checkpoint file as users name it: the file, or the newest of a run directory (in the first of its
/// checkpoint_folders that has one) or of its checkpoints folder.
/// Throws Error(data) where a folder holds none.
std::string resolve_checkpoint(const std::string& path);
/// The file that a user means by a trained model: a checkpoint, or the best (else the newest) one of a run directory or
/// its checkpoints folder. Throws Error(data).
std::string best_checkpoint(const std::string& path);

/// Told of a file that can't be one of them, and why.
using OnDamage = std::function<void(const std::string& path, const std::string& reason)>;
/// Checkpoints of a folder to go on from, newest first, by the first bytes of the files: those of later attempts, then
/// those with most steps done, and of one step `last` first. `last`, `epoch-0003`, `step-00001200`, ...; not `best`,
/// and none beside the line.
std::vector<std::string> list_checkpoints(const std::string& folder, const OnDamage& on_damage = {},
                                          const Lineage& lineage = {});
/// True for the names that a run gives its checkpoints and their shards (`last.h5`, `epoch-0003.shard-0001.a0002`),
/// damaged or not.
bool is_checkpoint_file(const std::string& file_name);

/// Names of the checkpoint files of a folder that aren't on the line, `best` included, with their shards; without a
/// line: all that a run may leave there.
std::vector<std::string> list_abandoned(const std::string& folder, const Lineage* lineage);
/// Files of the checkpoints of a folder that were saved after `than`, `best` included, with their shards.
struct NewerCheckpoints {
  std::vector<std::string> files;
  bool leaves_one = false;  ///< another checkpoint is left to go on from
};
NewerCheckpoints list_newer(const std::string& folder, const Stamp& than, const Lineage& lineage);
/// Tests whether put_aside() could move files. Throws Error(data) if not.
void require_way_aside(const std::string& folder, const Fence& fence);
/// Moves files to FOLDER.old-N, so that nothing overwrites them. `aside`: that folder, made by the first call. Throws
/// Error(superseded) or Error(data).
void put_aside(const std::string& folder, const std::vector<std::string>& files, std::string& aside,
               const Fence& fence);
/// Folders FOLDER.old-N that hold checkpoints.
std::vector<std::string> list_put_aside(const std::string& folder);

/// Keeps the newest `keep` of the numbered checkpoints and `last`, `best`. Throws Error(superseded).
void drop_old_checkpoints(const std::string& folder, int keep, const Fence& fence);
/// What killed saves of older attempts left: half-written files, shards without a main file. Only before this attempt's
/// first save. Throws Error(superseded).
void remove_leftovers(const std::string& folder, const Fence& fence);

}  // namespace convoy
