// SPDX-License-Identifier: Apache-2.0
// What a checkpoint file says of itself: its text attribute `meta`.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/trained_data.hpp"
#include "core/compression.hpp"
#include "core/types.hpp"

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

/// Among CheckpointMeta::numbers: steps of the lookahead whose slow weights the file holds in place of a moving
/// average.
inline constexpr const char* lookahead_number = "lookahead_steps";

/// Everything but the tensors. `texts`: choices, configuration (INI), build id, model name ...; `numbers`: best_top1
/// ...
struct CheckpointMeta {
  std::string run;    ///< id of the run; empty: written by no attempt
  Index attempt = 0;  ///< that wrote it
  Position position;
  int replicas = 1, ranks = 1;
  Index local_steps = 0;        ///< 0: sync = gradients
  double ema_decay = 0;         ///< of the moving average of the weights that the file holds; 0: none
  bool has_outer = false;       ///< the file holds the outer optimiser's state
  CompressionSpec compression;  ///< of gradients: what its residuals and bases are; only kind and rank are kept
  std::uint64_t plan_digest = 0;
  TrainedData data;                ///< of the phase that was trained last
  std::string configuration_hash;  ///< of what decides bits
  std::map<std::string, std::string> texts;
  std::map<std::string, double> numbers;

  /// 0: the average that the file holds, if any, is a moving average.
  double lookahead_steps() const {
    const auto at = numbers.find(lookahead_number);
    return at == numbers.end() ? 0 : at->second;
  }
};

/// What the main file knows of one shard, so that files of different saves are never taken for one set.
struct ShardRecord {
  int replica = 0;
  Index samples_since_average = 0;
  std::string file;        ///< name in the folder of the main file
  std::uint32_t seal = 0;  ///< seal_digest of the file
};

/// The text attribute `meta`.
struct FileMeta {
  CheckpointMeta meta;
  std::string model;                ///< Graph::model
  std::vector<ShardRecord> shards;  ///< main file, in the middle of a local-SGD period
  int replica = -1;                 ///< of a shard; -1: main file
  bool values_in_main = false;      ///< of a shard: its parameters are the main file's, and only there
};
std::string to_text(const FileMeta& meta);
/// Throws Error(data) naming `path`.
FileMeta parse_meta(const std::string& text, const std::string& path);

}  // namespace convoy
