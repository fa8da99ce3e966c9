// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "checkpoint/checkpoint.hpp"
#include "config/config.hpp"
#include "train/observer.hpp"
#include "train/spike_history.hpp"

namespace convoy {

struct TrainingJob;

/// Watches the loss of each interval of the log, and with rollback the norm of its last gradient. A spike is logged, or
/// undone: sets and moving average go back to a checkpoint from before the interval, newer ones move aside, and the run
/// saves and goes on with the next batch. Batches since that checkpoint count as seen and are not taken again
/// (--on-spike).
class SpikeGuard final : public Observer {
 public:
  explicit SpikeGuard(const TrainConfig& config);

  /// Before run(): the members of the job that are made later.
  void attach(TrainingJob& job);
  /// Collective.
  void step_done(LoopState& state) override;

  // These go into checkpoints and come back with them.
  void write(std::map<std::string, double>& numbers) const;
  void read(const CheckpointMeta& meta);
  Index undone_steps() const { return undone_steps_; }

 private:
  /// Collective. The largest of the ranks' last gradients.
  double gradient_norm();
  /// Collective. Checkpoints that were saved after `than` hold what a spike has made of the weights. The folder to
  /// which they move; empty: there were none.
  std::string put_newer_aside(const Stamp& than);
  /// Collective. `from`: steps of the checkpoint to return to, as this job counts them. Throws AgreedError.
  [[noreturn]] void give_up(const std::string& spike, Index from);
  /// Collective. False: there is no checkpoint to go back to.
  bool roll_back(LoopState& state, const std::string& spike);

  OnSpike action_;
  std::string configuration_;  ///< configuration_hash
  TrainingJob* job_ = nullptr;
  SpikeHistory losses_, norms_;
  Index undone_steps_ = 0;
  /// The end of the last interval that was calm or rolled back. Step -1: the attempt continues no interval.
  Stamp interval_begin_{0, -1};
  Index interval_first_step_ = 0;  ///< as this job counts, from 1
  Index rollbacks_ = 0;            ///< that too few intervals lie between
  Index calm_intervals_ = 0;       ///< without a spike, since the last return
  std::vector<float> gradients_;   ///< of the host
};

}  // namespace convoy
