// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "train/observer.hpp"

namespace convoy {

struct TrainingJob;

/// The faults of --inject-fault, for tests: on that rank at that step; a rank that was made slow stays slow.
class InjectedFaults final : public Observer {
 public:
  explicit InjectedFaults(TrainingJob& job) : job_(job) {}
  void step_begins(const LoopState& state) override;
  void batch_ready(const LoopState& state, Batch& batch) override;

 private:
  bool is(const char* kind, Index step) const;
  TrainingJob& job_;
};

}  // namespace convoy
