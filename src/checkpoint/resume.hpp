// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job go on from a checkpoint: rank 0 reads what all need, and each rank its own shards, so that a
// thousand ranks read no more than one.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/file.hpp"
#include "comm/communicator.hpp"

namespace convoy {

struct FoundCheckpoint {
  std::string path;
  FileMeta file;
  bool other_val = false;  ///< its best accuracy is of another val split than this run's
};

/// Why a whole checkpoint is none of this run's; empty: it is. Asked on rank 0.
using WhyForeign = std::function<std::string(const FileMeta& file)>;

/// Collective. The newest checkpoint of the folder that is on the line, whole, shards included, and not foreign. A
/// damaged or torn one is named in a warning and renamed to NAME.h5.damaged, a foreign one is named, and the next older
/// is taken. Nothing: the folder has none. Throws Error(data), the same on all ranks, where it has only foreign ones.
std::optional<FoundCheckpoint> find_checkpoint(Communicator& communicator, const std::string& folder,
                                               const WhyForeign& why_foreign = {}, const Lineage& lineage = {});

/// Collective. The checkpoint that a user names, by rank 0's eyes: a file, or the newest of a folder. Throws
/// Error(data), the same on all ranks.
FoundCheckpoint open_checkpoint(Communicator& communicator, const std::string& path,
                                const std::function<std::string(const std::string&)>& resolve = resolve_checkpoint);

/// Collective. The same, to resume from. Throws Error(data) also for an average of checkpoints, which has no place in
/// a run.
FoundCheckpoint open_to_resume(Communicator& communicator, const std::string& path);

/// Collective. Throws Error(data), the same on all ranks.
Checkpoint load_checkpoint(Communicator& communicator, const FoundCheckpoint& found, const Plan& plan,
                           const SetLayout& layout, const LoadSpec& spec);

}  // namespace convoy
