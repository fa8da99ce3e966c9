// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "data/loader.hpp"
#include "engine/engine.hpp"
#include "engine/in_flight_limit.hpp"
#include "engine/step_vote.hpp"
#include "metrics/metrics.hpp"
#include "optim/schedule.hpp"
#include "run/state_file.hpp"
#include "sync/sync.hpp"
#include "train/checkpointing.hpp"
#include "train/data_pipeline.hpp"
#include "train/foretell.hpp"
#include "train/interval.hpp"
#include "train/job.hpp"
#include "train/moving_average.hpp"
#include "train/rehearsal.hpp"

namespace convoy {

/// The loop: the loader data, the program launches, sync submits, comm moves; evaluation, checkpoints and the log
/// between.
class Trainer {
 public:
  struct Parts {
    Communicator& communicator;
    Collectives& collectives;
    Engine& engine;
    Sync& sync;
    MovingAverage& average;
    DataPipeline& data;
    std::vector<double> rate_factors;   ///< one a phase
    std::vector<Index> global_batches;  ///< likewise
    Metrics* metrics;                   ///< rank 0 only; null elsewhere
    StateFile* state;                   ///< likewise
    Checkpointing& checkpointing;
    Foreteller& foreteller;
    Rehearsal* rehearsal;  ///< null: this is the run
  };

  Trainer(const Parts& parts, const TrainConfig& config, const Job& job, const Schedule& schedule);

  /// Collective. From `position` to the end of this job's share. ok, or stopped after a checkpoint.
  Exit run(Position position);

 private:
  StepVote own_vote();
  bool interval_ends() const;
  bool validation_due() const;
  /// Collective. Hears what all ranks voted for one step, or one batch of an evaluation, ago. True: they stop.
  bool agree_on_stop();
  bool stops() const { return stop_ != StopReason::none || superseded_by_ > 0 || trouble_ != Exit::ok; }
  Exit leave_to_newer() const;
  /// Says that this job was to end before the run does.
  void tell_limit();
  /// What state.json says from now on.
  void tell(RunStage stage);
  /// Collective.
  void step();
  /// Collective.
  void turn(int replica);
  void take_counters();
  double rate(Index step) const;
  /// Of the phase whose epoch has just ended or goes on; null: no validation split, or --skip-eval.
  Evaluator* evaluator() const;
  void check_finite(const Counters& counters) const;
  /// Collective.
  void check_weights();
  void monitor();
  /// Collective.
  void log_interval(bool end_of_epoch);
  void end_epoch();
  /// Collective. After the first step of a rehearsal: how many follow.
  void limit_rehearsal(double step_seconds);
  /// What a rehearsal has found.
  void report_rehearsal(double checkpoint_seconds) const;
  /// Collective. Left undone where a stop is agreed on meanwhile.
  void validate();
  bool validation_missing() const;
  /// Collective.
  void save_where_due();
  /// Collective. ok, or the code with which the job leaves because it can't be saved.
  Exit save_last();
  std::string where() const;
  bool fault_is(const char* kind) const;

  Parts at_;
  const TrainConfig& config_;
  const Job& job_;
  const Schedule& schedule_;
  InFlightLimit in_flight_;
  Position position_;
  const EpochOrder* order_ = nullptr;
  Interval interval_, epoch_;
  EpochRecord epoch_record_;
  double images_per_second_ = 0, launch_seconds_ = 0;
  Index working_epoch_ = 0, working_step_ = 0;  ///< for messages: what the last or current step works on
  Index last_ = 0;                              ///< this job ends before that step
  std::string limit_;                           ///< the option that says so: `--max-steps 9`; empty: the run's end
  bool target_reached_ = false, save_asked_ = false;
  StopReason stop_ = StopReason::none;  ///< agreed
  Index superseded_by_ = 0;             ///< agreed: a newer attempt
  Exit trouble_ = Exit::ok;             ///< agreed: of saving
  bool save_due_ = false;               ///< agreed
};

}  // namespace convoy
