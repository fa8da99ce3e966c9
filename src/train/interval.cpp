// SPDX-License-Identifier: Apache-2.0
#include "train/interval.hpp"

#include <array>
#include <vector>

namespace convoy {

RankSpread Interval::compare(Communicator& communicator) const {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  constexpr std::size_t parts = 4;
  std::vector<double> all(parts * ranks, 0.0);
  const RankTimes own = times();
  double* mine = all.data() + parts * static_cast<std::size_t>(communicator.rank());
  mine[0] = own.data;
  mine[1] = own.compute;
  mine[2] = own.comm;
  mine[3] = own.other;
  communicator.sum(std::span<double>(all), "times of the ranks");
  std::vector<RankTimes> each(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    const double* of = all.data() + parts * r;
    each[r] = {.data = of[0], .compute = of[1], .comm = of[2], .other = of[3]};
  }
  return spread_of(each, communicator.hosts());
}

StepRecord Interval::reduce(Communicator& communicator) {
  std::array<double, 4> sums{seconds_, data_, compute_, comm_};
  counters_.reduce(communicator, "sums of the interval's counters");
  communicator.sum(std::span<double>(sums), "sum of the interval's times");
  const double ranks = communicator.size();
  StepRecord record;
  record.images = counters_.samples;
  record.counters = counters_.values();
  record.seconds = sums[0] / ranks;
  record.data_seconds = sums[1] / ranks;
  record.compute_seconds = sums[2] / ranks;
  record.comm_seconds = sums[3] / ranks;
  *this = Interval();
  return record;
}

}  // namespace convoy
