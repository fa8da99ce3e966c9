// SPDX-License-Identifier: Apache-2.0
// What the stretches of a run train and evaluate on: samples, loaders, evaluators.
#pragma once
#include <memory>
#include <vector>

#include "data/loader.hpp"
#include "train/evaluator.hpp"
#include "train/setup.hpp"

namespace convoy {

struct FeedsSpec {
  Engine& engine;
  Collectives& collectives;
  Communicator& communicator;
  double delay_seconds = 0;  ///< for tests: added to every batch
};

class Feeds {
 public:
  /// Reads samples, or opens their files, for all legs: legs on the same data share them. Talks to no other rank.
  Feeds(const std::vector<Leg>& legs, const Communicator& communicator);

  /// Before the first epoch: what the device keeps of the samples, and what evaluates them.
  void attach(const FeedsSpec& spec);

  /// The order of an epoch, whose batches are prepared from `from_step` on. In the last epoch of a leg the next leg's
  /// loader begins too, so that its first batches are there when it is its turn.
  const EpochOrder& begin_epoch(Index epoch, Index from_step);
  Batch next(Index step, int replica) { return loaders_[leg_]->next(step, replica); }
  double take_wait_seconds() { return loaders_[leg_]->take_wait_seconds(); }
  /// Of the leg of an epoch; null: no validation split, or --skip-eval.
  Evaluator* evaluator(Index epoch);
  /// Samples of the rank in memory, and the batches under way, bytes.
  Index memory_bytes() const { return memory_bytes_; }

 private:
  struct Samples {
    std::shared_ptr<Dataset> train, val;
  };
  const std::vector<Leg>& legs_;
  std::vector<Samples> samples_;                        ///< one a leg
  std::vector<std::unique_ptr<Loader>> loaders_;        ///< one a leg
  std::vector<std::unique_ptr<Evaluator>> evaluators_;  ///< one a leg; null: none
  Index memory_bytes_ = 0;
  std::size_t leg_ = 0;
  const EpochOrder* order_ahead_ = nullptr;  ///< of the next leg's first epoch, whose batches are under way
};

}  // namespace convoy
