// SPDX-License-Identifier: Apache-2.0
// Where the time of the steps goes, and what they learned, summed until the next line of the log.
#pragma once
#include "backend/backend.hpp"
#include "comm/communicator.hpp"
#include "engine/evaluator.hpp"
#include "metrics/metrics.hpp"
#include "train/step_timer.hpp"

namespace convoy {

/// Of all ranks; times are means over ranks.
struct JobSums {
  Counters counters;
  StepSeconds seconds;

  void add(const JobSums& other);
  /// All but where the interval lies.
  StepRecord record() const;
};

class Interval {
 public:
  /// A step's loss counts in units of 2^-24, so that sums are exact: how they are split over ranks, and over the jobs
  /// of a run, changes nothing.
  void add(const Counters& counters);
  void add(const StepSeconds& seconds) { seconds_ += seconds; }

  /// Of this rank.
  RankTimes times() const;
  /// Of this rank's samples; NaN: there were none.
  double loss() const;
  double seconds() const { return seconds_.step; }
  /// Collective. How the ranks compare.
  RankSpread compare(Communicator& communicator) const;
  /// Collective.
  JobSums total(Communicator& communicator) const;

 private:
  Counters counters_;
  StepSeconds seconds_;
};

}  // namespace convoy
