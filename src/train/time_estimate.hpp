// SPDX-License-Identifier: Apache-2.0
// How long a run will take, from its first steps on: printed by a run and by its trial run.
#pragma once
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "config/config.hpp"
#include "train/setup.hpp"

namespace convoy {

/// The work of a training phase.
struct PhaseWork {
  Index begin_epoch = 0;
  double train_images = 0;  ///< of a step, all ranks
  double val_images = 0;    ///< of a validation, all ranks; 0: none
  /// Floating-point operations of an image, in any unit: of a step (forward and backward), of a validation (forward).
  double train_work = 3, val_work = 1;
};

/// The work that lies ahead of a job. Times are seconds.
struct WorkAhead {
  Timeline timeline;
  std::vector<PhaseWork> phases;        ///< one per phase of the timeline
  Index first_step = 0, last_step = 0;  ///< steps done when this job begins; when the whole run ends
  double val_interval = 1;              ///< epochs; 0: only at the end
  double save_interval = 0;             ///< epochs between two checkpoints; 0: only at the end

  /// The phase of the steps after `step`.
  std::size_t phase(Index step) const { return timeline.phase(timeline.epoch_of(step)); }
};
WorkAhead work_ahead(const TrainConfig& config, const Graph& graph, const std::vector<TrainingPhase>& phases,
                     const Position& position);

struct TimeLeft {
  Index steps = 0;                            ///< of an epoch
  double step = 0, validation = 0, save = 0;  ///< seconds of one
  double epoch = 0;                           ///< steps, validations and checkpoints of one epoch, on average
  double left = 0;                            ///< from now to the end of the run
  std::vector<double> later_epochs;           ///< the same as `epoch`, of the later phases that the run reaches
};
/// One line: a step, an epoch and its parts, the rest of the run.
std::string describe(const TimeLeft& time);

/// The limit of the job that estimates. Times are seconds since 1970; 0: none.
struct JobLimit {
  double began = 0;                 ///< this process
  double end_time = 0, margin = 0;  ///< margin: seconds before the end that are kept free
};

/// Estimates the time that is left from a moving average of the step time, and logs it after the first steps, and again
/// when the first epoch of the job, and of every later phase, and its validation have been measured.
class TimeEstimate {
 public:
  TimeEstimate(const WorkAhead& work, const JobLimit& limit);

  /// `step`: steps done. The time counts whatever the host waited for, the counters of a device included.
  void step_took(double seconds, Index step);
  /// `images`: that it looked at; a trial run takes a part of them.
  void validation_done(double seconds, Index images);
  /// `seconds`: for which a checkpoint held the steps up.
  void save_done(double seconds);

  /// True when enough steps were measured; the first ones warm caches and don't count.
  bool is_ready() const;
  /// `step`: done so far. A phase without steps of its own takes those of the nearest one that has some, by its images
  /// and their operations.
  TimeLeft at(Index step) const;
  const WorkAhead& work() const { return work_; }
  double start_up_seconds() const { return start_up_; }

 private:
  struct Measured {
    Index steps = 0, validations = 0;
    double step = 0;          ///< seconds, moving average
    double warm_up_step = 0;  ///< mean of the first steps
    double counted = 0;       ///< seconds of all steps after the first ones
    double validation = 0;    ///< mean
  };

  /// The phase nearest to `phase` of which `has` says that it was measured; their number: none.
  template <class Has>
  std::size_t nearest(std::size_t phase, const Has& has) const;
  double step_work(std::size_t phase) const {
    return work_.phases[phase].train_images * work_.phases[phase].train_work;
  }
  double val_work(std::size_t phase) const { return work_.phases[phase].val_images * work_.phases[phase].val_work; }
  double step_seconds(std::size_t phase) const;
  double validation_seconds(std::size_t phase) const;
  double epoch_seconds(std::size_t phase, double save) const;
  void tell(Index step);

  WorkAhead work_;
  JobLimit limit_;
  double start_up_ = 0;
  std::vector<Measured> measured_;  ///< one per phase
  std::size_t phase_ = 0;           ///< of the last step
  Index saves_ = 0;
  double save_ = 0;  ///< mean seconds
  bool told_ = false;
  Index tell_again_at_ = 0;
};

/// What the limit of a job means for the run. Times are seconds.
struct JobTime {
  double left = 0;      ///< of the run
  double start_up = 0;  ///< of every job
  double limit = 0;     ///< of this job, from its start; 0: none
  double margin = 0;    ///< kept free before the limit
  double elapsed = 0;   ///< of this job
  double epoch = 0;     ///< of an epoch
};
/// Jobs of this length that the run takes after this one.
Index jobs_to_come(const JobTime& time);
/// One line; empty where there is no limit and nothing to say.
std::string describe(const JobTime& time);
/// `20:30:00`, as --time and walltime take it: that long and a tenth more, in whole minutes.
std::string time_to_ask_for(double seconds);

}  // namespace convoy
