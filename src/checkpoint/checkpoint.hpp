// SPDX-License-Identifier: Apache-2.0
// Checkpoints: sealed HDF5, written under a temporary name, verified, renamed. docs/checkpoints.md has the layout.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "checkpoint/fence.hpp"
#include "comm/communicator.hpp"
#include "network/plan.hpp"

namespace convoy {

struct Position {
  Index epoch = 0;          ///< the epoch that goes on
  Index step_in_epoch = 0;  ///< steps of it that are done
  Index step = 0;           ///< steps done in all
  Index images = 0;         ///< samples seen in all

  /// The epoch whose samples were seen last: at the border between two the one that has ended, so that its data,
  /// validation and weights go together.
  Index data_epoch() const { return step_in_epoch == 0 && epoch > 0 ? epoch - 1 : epoch; }
};

/// Everything but the tensors. `texts`: choices, configuration (INI), build id, model name ...; `numbers`: best_top1
/// ...
struct CheckpointMeta {
  std::string run;    ///< id of the run; empty: written by no attempt
  Index attempt = 0;  ///< that wrote it
  Position position;
  int replicas = 1, ranks = 1;
  Index local_steps = 0;  ///< 0: sync = gradients
  double ema_decay = 0;   ///< of the moving average of the weights that the file holds; 0: none
  std::uint64_t plan_digest = 0;
  std::string configuration_hash;  ///< of what decides bits
  std::map<std::string, std::string> texts;
  std::map<std::string, double> numbers;
};

/// A set in host memory, laid out as SetLayout.
struct HostSet {
  Index first = 0;  ///< of the set's floats, block[0]; what precedes it is left out
  std::vector<float> block;
};

/// One replica's own set in the middle of a local-SGD period.
struct Shard {
  int replica = 0;
  Index samples_since_average = 0;
  HostSet set;  ///< to be saved: without its values (from SetLayout::optimiser on) where they are those of the average
};

struct Checkpoint {
  std::string path;
  CheckpointMeta meta;
  HostSet set;                      ///< in this plan's layout
  HostSet ema;                      ///< the moving average: values and statistics; empty: there is none
  std::vector<Shard> shards;        ///< those of the wanted replicas
  std::vector<std::string> unread;  ///< parameters that the set lacks: of a head for other classes
};

/// What to make of a last linear layer for another number of classes. left_out: it isn't read.
enum class OtherHead : std::uint8_t { refused, left_out };

struct LoadSpec {
  /// Parameters and running statistics by name, of the moving average where there is one; optimiser and position left
  /// at start.
  bool weights_only = false;
  OtherHead other_head = OtherHead::refused;  ///< left_out: only with weights_only
  bool shards = true;
  int first_replica = 0, replica_count = 0;  ///< whose shards to read
};

/// Reads only the meta part. Throws Error(data).
CheckpointMeta load_checkpoint_meta(const std::string& path);

/// A checkpoint file as users name it: the file, or the newest of a run directory or of its checkpoints folder.
/// Throws Error(data) where a folder holds none.
std::string resolve_checkpoint(const std::string& path);
/// The file that a user means by a trained model: a checkpoint, or the best (else the newest) one of a run directory or
/// its checkpoints folder. Throws Error(data).
std::string best_checkpoint(const std::string& path);

/// Told of a file that can't be one of them, and why.
using OnDamage = std::function<void(const std::string& path, const std::string& reason)>;
/// Checkpoints of a folder to go on from, those with most steps done first, by the first bytes of the files: `last`,
/// `epoch-0003`, `step-00001200`, ...; not `best`.
std::vector<std::string> list_checkpoints(const std::string& folder, const OnDamage& on_damage = {});
/// True for the names that a run gives its checkpoints and their shards (`last.h5`, `epoch-0003.shard-0001.h5`),
/// damaged or not.
bool is_checkpoint_file(const std::string& file_name);

/// Keeps the newest `keep` of the numbered checkpoints and `last`, `best`. Throws Error(superseded).
void drop_old_checkpoints(const std::string& folder, int keep, const Fence& fence);
/// What killed saves of older attempts left: half-written files, shards without a main file. Only before this attempt's
/// first save. Throws Error(superseded).
void remove_leftovers(const std::string& folder, const Fence& fence);

}  // namespace convoy
