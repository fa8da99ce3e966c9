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
  std::array<std::int64_t, 3> counts{top1_, topk_, samples_};
  std::array<double, 5> sums{loss_, seconds_, data_, compute_, comm_};
  communicator.sum(std::span<std::int64_t>(counts), "sum of the interval's counters");
  communicator.sum(std::span<double>(sums), "sum of the interval's times");
  const double ranks = communicator.size(), samples = static_cast<double>(std::max<std::int64_t>(counts[2], 1));
  StepRecord record;
  record.images = counts[2];
  record.loss = sums[0] / samples;
  record.top1 = 100.0 * static_cast<double>(counts[0]) / samples;
  record.topk = 100.0 * static_cast<double>(counts[1]) / samples;
  record.seconds = sums[1] / ranks;
  record.data_seconds = sums[2] / ranks;
  record.compute_seconds = sums[3] / ranks;
  record.comm_seconds = sums[4] / ranks;
  *this = Interval();
  return record;
}

}  // namespace convoy
