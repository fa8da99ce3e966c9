// SPDX-License-Identifier: Apache-2.0
// Where the time of the steps goes, and what they learned, summed until the next line of the log.
#pragma once
#include <algorithm>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"
#include "engine/evaluator.hpp"
#include "metrics/metrics.hpp"
#include "train/step_timer.hpp"

namespace convoy {

class Interval {
 public:
  void add(const Counters& counters) { counters_.add(counters); }
  void add(const StepSeconds& seconds) {
    seconds_ += seconds.step;
    data_ += seconds.data;
    compute_ += seconds.compute;
    comm_ += seconds.comm;
  }

  /// Of this rank.
  RankTimes times() const {
    return {
        .data = data_, .compute = compute_, .comm = comm_, .other = std::max(0.0, seconds_ - data_ - compute_ - comm_)};
  }

  /// Collective. How the ranks compare.
  RankSpread compare(Communicator& communicator) const;
  /// Collective. The job's record: sums over ranks, times are means over ranks. Starts the next interval.
  StepRecord reduce(Communicator& communicator);

 private:
  CounterSums counters_;
  double seconds_ = 0, data_ = 0, compute_ = 0, comm_ = 0;
};

}  // namespace convoy
