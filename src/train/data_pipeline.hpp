// SPDX-License-Identifier: Apache-2.0
// What the phases of a run train and evaluate on: samples, loaders, evaluators.
#pragma once
#include <memory>
#include <vector>

#include "data/loader.hpp"
#include "engine/evaluator.hpp"
#include "train/setup.hpp"

namespace convoy {

struct DataPipelineSpec {
  Engine& engine;
  Collectives& collectives;
  Communicator& communicator;
  double delay_seconds = 0;  ///< for tests: added to every batch
};

class DataPipeline {
 public:
  /// Reads samples, or opens their files, for all phases: phases on the same data share them. Talks to no other rank.
  DataPipeline(const std::vector<TrainingPhase>& phases, const Communicator& communicator);

  /// Before the first epoch: what the device keeps of the samples, and what evaluates them.
  void attach(const DataPipelineSpec& spec);

  /// The order of an epoch, whose batches are prepared from `from_step` on. In the last epoch of a phase the next
  /// phase's loader begins too, so that its first batches are there when it is its turn.
  const EpochOrder& begin_epoch(Index epoch, Index from_step);
  Batch next(Index step, int replica) { return loaders_[phase_]->next(step, replica); }
  double take_wait_seconds() { return loaders_[phase_]->take_wait_seconds(); }
  /// Of the phase of an epoch; null: no validation split, or --skip-eval.
  Evaluator* evaluator(Index epoch);
  /// Samples of the rank in memory, and the batches under way, bytes.
  Index memory_bytes() const { return memory_bytes_; }

 private:
  struct Samples {
    std::shared_ptr<Dataset> train, val;
  };
  const std::vector<TrainingPhase>& phases_;
  std::vector<Samples> samples_;                        ///< one a phase
  std::vector<std::unique_ptr<Loader>> loaders_;        ///< one a phase
  std::vector<std::unique_ptr<Evaluator>> evaluators_;  ///< one a phase; null: none
  Index memory_bytes_ = 0;
  std::size_t phase_ = 0;
  const EpochOrder* order_ahead_ = nullptr;  ///< of the next phase's first epoch, whose batches are under way
};

}  // namespace convoy
