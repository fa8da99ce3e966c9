// SPDX-License-Identifier: Apache-2.0
// What the phases of a run train and evaluate on: samples, loaders, evaluators.
#pragma once
#include <memory>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "data/loader.hpp"
#include "engine/engine.hpp"
#include "engine/evaluator.hpp"
#include "train/setup.hpp"

namespace convoy {

struct DataPipelineSpec {
  Engine& engine;
  Collectives& collectives;
  Communicator& communicator;
  double delay_seconds = 0;  ///< for tests: added to every batch
};

/// One replica's part of a step.
struct ReplicaBatch {
  int replica = -1;  ///< -1: this rank has none at this turn
  ReplayKey key;     ///< its program; no samples: nothing is fed
  Index step_samples = 0;
  Batch input;
};

/// What DataPipeline takes of the memory of a rank's host, known before it reads samples.
struct HostBytes {
  Index samples = 0;  ///< that it keeps
  Index batches = 0;  ///< that its loaders prepare ahead
};
HostBytes host_bytes(const std::vector<TrainingPhase>& phases, int node_size);

class DataPipeline {
 public:
  /// Reads samples, or opens their files, for all phases: phases on the same data share them. Talks to no other rank.
  DataPipeline(const std::vector<TrainingPhase>& phases, const Communicator& communicator);

  /// Before the first epoch: what the device keeps of the samples, and what evaluates them.
  void attach(const DataPipelineSpec& spec);

  /// Waits for the batch of a replica (-1: none) in the step after `position`. At the first batch of an epoch its order
  /// is made and its batches are prepared from that step on. In the last epoch of a phase the next phase's loader
  /// begins too, so that its first batches are there when it is its turn.
  ReplicaBatch next(const Position& position, int replica);
  /// Copies the images of a batch as rows, wherever the device takes them from. Returns the bytes of one.
  Index copy_images(const ReplicaBatch& batch, std::vector<std::uint8_t>& to) const;
  /// Samples of all replicas in the step after `position`, whose batches were asked for.
  Index step_samples(const Position& position) const { return order_->total(position.step_in_epoch); }
  double take_wait_seconds() { return loaders_[phase_]->take_wait_seconds(); }
  /// Of the phase of an epoch; null: no validation split, or --skip-eval.
  Evaluator* evaluator(Index epoch);
  /// Collective. Damaged samples for which others stood in, of all ranks together.
  Index skipped(Communicator& communicator) const;
  /// Samples of the rank in memory, and the batches under way, bytes.
  Index memory_bytes() const { return memory_bytes_; }

 private:
  void begin_epoch(Index epoch, Index from_step);

  struct Samples {
    std::shared_ptr<Dataset> train, val;
  };
  const std::vector<TrainingPhase>& phases_;
  std::vector<Samples> samples_;                        ///< one per phase
  std::vector<std::unique_ptr<Loader>> loaders_;        ///< one per phase
  std::vector<std::unique_ptr<Evaluator>> evaluators_;  ///< one per phase; null: none
  Index memory_bytes_ = 0;
  bool sync_bn_ = false;
  std::size_t phase_ = 0;
  Index epoch_ = -1;  ///< that has begun
  const EpochOrder* order_ = nullptr;
  const EpochOrder* order_ahead_ = nullptr;  ///< of the next phase's first epoch, whose batches are under way
};

}  // namespace convoy
