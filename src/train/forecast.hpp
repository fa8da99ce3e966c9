// SPDX-License-Identifier: Apache-2.0
// How long a job will take, from the first steps on: printed by a run and by its dry run.
#pragma once
#include <string>

#include "core/types.hpp"

namespace convoy {

/// The shape of the work ahead. Times are seconds.
struct ForecastSpec {
  Index steps_per_epoch = 0;
  Index first_step = 0, last_step = 0;  ///< steps done when this job begins; when the whole run ends
  double train_images = 0;              ///< of a step, all ranks
  double val_images = 0;                ///< of a validation, all ranks; 0: none
  double val_interval = 1;              ///< epochs; 0: only at the end
  double save_interval = 0;             ///< epochs between two checkpoints; 0: only at the end
};

struct Estimate {
  double step = 0, validation = 0, save = 0;  ///< seconds of one
  double epoch = 0;                           ///< steps, validations and checkpoints of one epoch
  double left = 0;                            ///< from now to the end of the run
};

class Forecast {
 public:
  explicit Forecast(const ForecastSpec& spec) : spec_(spec) {}

  /// Of the main loop, one step after the other, with all that it waits for.
  void add_step(double seconds);
  void add_validation(double seconds);
  /// What a checkpoint holds the steps up.
  void add_save(double seconds);

  /// Enough steps for a word: the first ones warm caches and are not counted.
  bool is_ready() const;
  /// `step`: done so far.
  Estimate estimate(Index step) const;

 private:
  static constexpr Index warm_up = 2, wanted_steps = 10;
  static constexpr double least_seconds = 3;    ///< of those steps: other work on the machine comes and goes
  static constexpr double wanted_seconds = 10;  ///< less steps are enough where they are that long

  ForecastSpec spec_;
  Index steps_ = 0, validations_ = 0, saves_ = 0;
  double step_seconds_ = 0, warm_up_seconds_ = 0, validation_seconds_ = 0, save_seconds_ = 0;
};

/// One line: a step, an epoch and its parts, the rest of the run.
std::string describe(const Estimate& estimate, const ForecastSpec& spec);

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
