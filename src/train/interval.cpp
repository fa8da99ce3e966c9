// SPDX-License-Identifier: Apache-2.0
#include "train/interval.hpp"

#include <array>

namespace convoy {

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
