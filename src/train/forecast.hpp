// SPDX-License-Identifier: Apache-2.0
// How long a job will take, from the first steps on: printed by a run and by its dry run.
#pragma once
#include <string>
#include <vector>

#include "core/types.hpp"
#include "train/timeline.hpp"

namespace convoy {

/// The work of a phase of epochs with one image size and batch.
struct PhaseWork {
  Index begin_epoch = 0;
  double train_images = 0;  ///< of a step, all ranks
  double val_images = 0;    ///< of a validation, all ranks; 0: none
  /// Floating-point operations of an image, in any unit: of a step (forward and backward), of a validation (forward).
  double train_work = 3, val_work = 1;
};

/// The shape of the work ahead. Times are seconds.
struct ForecastSpec {
  Timeline timeline;
  std::vector<PhaseWork> phases;        ///< one a phase of the timeline
  Index first_step = 0, last_step = 0;  ///< steps done when this job begins; when the whole run ends
  double val_interval = 1;              ///< epochs; 0: only at the end
  double save_interval = 0;             ///< epochs between two checkpoints; 0: only at the end

  /// In which the steps after `step` lie.
  std::size_t phase(Index step) const { return timeline.phase(timeline.epoch_of(step)); }
};

struct Estimate {
  Index steps = 0;                            ///< of an epoch
  double step = 0, validation = 0, save = 0;  ///< seconds of one
  double epoch = 0;                           ///< steps, validations and checkpoints of one epoch, on average
  double left = 0;                            ///< from now to the end of the run
  std::vector<double> later_epochs;  ///< the same as `epoch`, of the phases after this one that the run reaches
};

class Forecast {
 public:
  explicit Forecast(const ForecastSpec& spec) : spec_(spec), measured_(spec.phases.size()) {}

  /// Of the main loop, one step of a phase after the other, with all that it waits for.
  void add_step(double seconds, std::size_t phase = 0);
  void add_validation(double seconds, std::size_t phase = 0);
  /// What a checkpoint holds the steps up.
  void add_save(double seconds);

  /// Enough steps for a word: the first ones warm caches and are not counted.
  bool is_ready() const;
  /// `step`: done so far. A phase without steps of its own takes those of the nearest one that has some, by its images
  /// and their operations.
  Estimate estimate(Index step) const;

 private:
  static constexpr Index warm_up = 2, wanted_steps = 10;
  static constexpr double least_seconds = 3;    ///< of those steps: other work on the machine comes and goes
  static constexpr double wanted_seconds = 10;  ///< less steps are enough where they are that long

  struct Measured {
    Index steps = 0, validations = 0;
    double step_seconds = 0, warm_up_seconds = 0, validation_seconds = 0;
    bool warm() const { return steps > warm_up; }
  };

  /// The phase nearest to `phase` of which `has` says that it was measured; phases.size(): none.
  template <class Has>
  std::size_t nearest(std::size_t phase, const Has& has) const;
  double step_work(std::size_t phase) const {
    return spec_.phases[phase].train_images * spec_.phases[phase].train_work;
  }
  double val_work(std::size_t phase) const { return spec_.phases[phase].val_images * spec_.phases[phase].val_work; }
  double step_seconds(std::size_t phase) const;
  double validation_seconds(std::size_t phase) const;
  double epoch_seconds(std::size_t phase, double save) const;

  ForecastSpec spec_;
  std::vector<Measured> measured_;  ///< one a phase
  std::size_t running_ = 0;         ///< the phase of the last step
  Index saves_ = 0;
  double save_seconds_ = 0;
};

/// One line: a step, an epoch and its parts, the rest of the run.
std::string describe(const Estimate& estimate);

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
