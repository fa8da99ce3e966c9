// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "train/data_pipeline.hpp"
#include "train/loop_state.hpp"

namespace convoy {

/// What goes on around the steps of the training loop. Each call comes at the same place on all ranks.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void step_begins(const LoopState&) {}
  /// Before a replica's batch is fed; a batch without samples is not fed.
  virtual void batch_ready(const LoopState&, ReplicaBatch&) {}
  /// True if stage_done is wanted in this step, which then can't be replayed as a whole.
  virtual bool watches_stages(const LoopState&) const { return false; }
  /// A stage of a replica is launched, and nothing of what it made is summed yet.
  virtual void stage_done(const LoopState&, const ReplicaBatch&, std::size_t) {}
  /// Collective.
  virtual void step_done(LoopState&) {}
};

/// Observers in the order in which they are told.
class Observers {
 public:
  explicit Observers(std::vector<Observer*> list) : list_(std::move(list)) {}
  void step_begins(const LoopState& state) const {
    for (Observer* observer : list_) observer->step_begins(state);
  }
  void batch_ready(const LoopState& state, ReplicaBatch& batch) const {
    for (Observer* observer : list_) observer->batch_ready(state, batch);
  }
  bool watch_stages(const LoopState& state) const {
    return std::any_of(list_.begin(), list_.end(), [&](Observer* observer) { return observer->watches_stages(state); });
  }
  void stage_done(const LoopState& state, const ReplicaBatch& batch, std::size_t stage) const {
    for (Observer* observer : list_) observer->stage_done(state, batch, stage);
  }
  /// Collective.
  void step_done(LoopState& state) const {
    for (Observer* observer : list_) observer->step_done(state);
  }

 private:
  std::vector<Observer*> list_;
};

}  // namespace convoy
