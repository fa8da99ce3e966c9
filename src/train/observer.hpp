// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "train/loop_state.hpp"

namespace convoy {

/// What goes on around the steps of the training loop. Each call comes at the same place on all ranks.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void step_begins(const LoopState&) {}
  /// Before a replica's batch is fed; a batch without samples is not fed.
  virtual void batch_ready(const LoopState&, Batch&) {}
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
  void batch_ready(const LoopState& state, Batch& batch) const {
    for (Observer* observer : list_) observer->batch_ready(state, batch);
  }
  /// Collective.
  void step_done(LoopState& state) const {
    for (Observer* observer : list_) observer->step_done(state);
  }

 private:
  std::vector<Observer*> list_;
};

}  // namespace convoy
