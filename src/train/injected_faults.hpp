// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "comm/collectives.hpp"
#include "config/config.hpp"
#include "train/observer.hpp"

namespace convoy {

struct TrainingJob;

/// The sums of a job; one of them can be made wrong on this rank.
class FlippedSums;
/// `sums`, or with --inject-fault flip-sum sums that can be made wrong.
std::unique_ptr<Collectives> with_faults(std::unique_ptr<Collectives> sums, const TrainConfig& config, Device& device);

/// The faults of --inject-fault, for tests: on that rank at that step; a rank that was made slow stays slow.
class InjectedFaults final : public Observer {
 public:
  explicit InjectedFaults(TrainingJob& job);
  void step_begins(const LoopState& state) override;
  void batch_ready(const LoopState& state, ReplicaBatch& batch) override;
  bool watches_stages(const LoopState& state) const override;
  void stage_done(const LoopState& state, const ReplicaBatch& batch, std::size_t stage) override;

 private:
  bool is(const char* kind, Index step) const;
  void flip(float* values, Index count) const;
  TrainingJob& job_;
  FlippedSums* sums_;
};

}  // namespace convoy
