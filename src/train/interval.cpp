// SPDX-License-Identifier: Apache-2.0
#include "train/interval.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/host_facts.hpp"

namespace convoy {

void JobSums::add(const JobSums& other) {
  counters.add(other.counters);
  seconds += other.seconds;
}

StepRecord JobSums::record() const {
  return {.images = counters.samples,
          .counters = shown(counters.sums, counters.samples),
          .seconds = seconds.step,
          .data_seconds = seconds.data,
          .compute_seconds = seconds.compute,
          .comm_seconds = seconds.comm};
}

void Interval::add(const Counters& counters) {
  constexpr double units = 1 << 24;
  Counters exact = counters;
  exact.sums[Counter::loss] = std::nearbyint(counters.sums[Counter::loss] * units) / units;
  counters_.add(exact);
}

double Interval::loss() const {
  return counters_.samples > 0 ? shown(counters_.sums, counters_.samples)[Counter::loss] : std::nan("");
}

RankTimes Interval::times() const {
  return {.data = seconds_.data,
          .compute = seconds_.compute,
          .comm = seconds_.comm,
          .other = std::max(0.0, seconds_.step - seconds_.data - seconds_.compute - seconds_.comm)};
}

RankSpread Interval::compare(Communicator& communicator) const {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  constexpr std::size_t parts = 5;
  std::vector<double> all(parts * ranks, 0.0);
  const RankTimes own = times();
  double* mine = all.data() + parts * static_cast<std::size_t>(communicator.rank());
  mine[0] = own.data;
  mine[1] = own.compute;
  mine[2] = own.comm;
  mine[3] = own.other;
  mine[4] = peak_memory();
  communicator.sum(std::span<double>(all), "times of the ranks");
  std::vector<RankTimes> each(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    const double* of = all.data() + parts * r;
    each[r] = {.data = of[0], .compute = of[1], .comm = of[2], .other = of[3], .peak_memory = of[4]};
  }
  return spread_of(each, communicator.hosts());
}

JobSums Interval::total(Communicator& communicator) const {
  JobSums all{counters_, {}};
  std::array<double, 4> sums{seconds_.step, seconds_.data, seconds_.compute, seconds_.comm};
  sum_over_ranks(communicator, all.counters, "sums of the interval's counters");
  communicator.sum(std::span<double>(sums), "sum of the interval's times");
  for (double& sum : sums) sum /= communicator.size();
  all.seconds = {.step = sums[0], .data = sums[1], .compute = sums[2], .comm = sums[3]};
  return all;
}

}  // namespace convoy
