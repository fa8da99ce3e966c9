// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/time_limit.hpp"
#include "engine/engine.hpp"
#include "engine/placement.hpp"
#include "metrics/metrics.hpp"
#include "run/supervisor.hpp"
#include "train/checkpointing.hpp"
#include "train/data_pipeline.hpp"
#include "train/moving_average.hpp"
#include "train/optimiser.hpp"
#include "train/run_report.hpp"
#include "train/spike_guard.hpp"
#include "train/step_timer.hpp"
#include "train/stop_vote.hpp"
#include "train/time_estimate.hpp"
#include "train/training_log.hpp"

namespace convoy {

class Trial;

/// One rank's part of a training job: all that the loop and its observers work with, made in this order, which is the
/// order in which things can fail.
struct TrainingJob {
  /// Collective. `trial`: null, or the observer for which the job runs. Throws AgreedError, or Error if only this rank
  /// failed.
  TrainingJob(Communicator& communicator, Supervisor& supervisor, const TrainConfig& wanted, Trial* trial);
  TrainingJob(const TrainingJob&) = delete;
  TrainingJob& operator=(const TrainingJob&) = delete;

  /// Collective. From where the run stands to the end of this job's share. ok; stopped after a checkpoint; superseded;
  /// or the code with which the job leaves because it can't be saved.
  Exit run();

  /// The host stays a few launches ahead of the device at most.
  void wait_for_device(const char* what);

  Communicator& communicator;
  Trial* const trial;
  const double began;  ///< seconds since 1970
  TrainConfig config;
  Attempt& attempt;
  KeptLimit limit;
  StateFile* const state_file;  ///< rank 0 only; null elsewhere
  JobPlacement placement;
  std::vector<TrainingPhase> phases;
  Graph graph;
  std::optional<FoundCheckpoint> resume;
  JobShape shape;  ///< replicas, batches, steps
  EngineSpec engine_spec;
  std::unique_ptr<DataPipeline> data;
  std::unique_ptr<Engine> engine;
  TransportChoice transport;
  std::unique_ptr<Collectives> collectives;
  std::unique_ptr<Communicator> group;  ///< the ranks that share a group of replicas; null: there are no groups
  std::unique_ptr<Collectives> group_collectives;
  std::unique_ptr<Sync> sync;
  MovingAverage average;
  SpikeGuard spikes;
  Optimiser optimiser;
  Checkpointing checkpointing;
  LoopState state;
  std::unique_ptr<Metrics> metrics;  ///< rank 0 only; null elsewhere
  StepTimer timer;
  InFlightLimit in_flight;
  // Observers that others ask, and the estimate that the log feeds.
  RunReport report;
  StopVote vote;
  TrainingLog training_log;
  TimeEstimate estimate;

 private:
  enum class LastValidation : std::uint8_t { is_done, is_missing };
  /// Collective. Saves, and says how the job ends.
  Exit finish(LastValidation validation);
  /// --max-steps or --run-epochs ends the job before the run ends.
  bool is_part() const;
  /// Collective.
  Exit save_last();
  Exit leave_to_newer() const;
  /// Collective. Rank 0 logs the end of the run's metrics.
  Exit end(Exit code) const;
};

}  // namespace convoy
