// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>

#include "train/interval.hpp"
#include "train/observer.hpp"

namespace convoy {

struct TrainingJob;

/// Reads the device's counters, and tells log, metrics and state.json what an interval of steps and an epoch gave.
class TrainingLog final : public Observer {
 public:
  explicit TrainingLog(TrainingJob& job);

  void step_begins(const LoopState& state) override;
  void step_done(LoopState& state) override;
  /// Takes what the device has counted since the last time. Throws Error(internal) where an update was not finite.
  void take_counters();
  /// Collective. What the steps of the epoch that goes on gave, those of earlier attempts included.
  JobSums sums_of_epoch();
  /// True if the step that is done ends an interval that the log has reported.
  bool interval_ends(const LoopState& state) const;
  /// Of the last interval, the same on all ranks; NaN: there was none.
  double interval_loss() const { return loss_; }

 private:
  StepProgress progress_after(const LoopState& state) const;
  /// Collective.
  void log_interval(const LoopState& state);
  void tell_slow_hosts(const RankSpread& ranks, Index epoch) const;
  /// Collective. What `sums` have sent since `told`, of all ranks; -1: there are none, or nobody counts.
  Index take_sent_bytes(const Collectives* sums, Index& told);

  TrainingJob& job_;
  Interval interval_, epoch_;
  JobSums earlier_;  ///< of the epoch, before this attempt
  Index interval_steps_ = 0, told_bytes_ = 0, told_group_bytes_ = 0;
  double images_per_second_ = 0;                            ///< of the last interval
  double loss_ = std::numeric_limits<double>::quiet_NaN();  ///< of the last interval
};

}  // namespace convoy
