// SPDX-License-Identifier: Apache-2.0
#include "backend/lowering/stages.hpp"

#include <algorithm>

#include "backend/rules/exchanged_sum.hpp"

namespace convoy::lowering {

std::vector<Stage> make_stages(const Plan& plan, std::size_t steps, const std::vector<FinalRow>& finals,
                               const std::vector<Exchange>& exchanges) {
  const auto overlaps = [](const Range& a, const Range& b) { return a.begin < b.end() && b.begin < a.end(); };
  std::vector<std::size_t> bucket_ends;
  std::size_t bucket_end = 0;
  for (const Range& bucket : plan.buckets) {
    for (const FinalRow& final : finals)
      if (overlaps(plan.table.rows[static_cast<std::size_t>(final.row)].range, bucket))
        bucket_end = std::max(bucket_end, final.end);
    bucket_ends.push_back(bucket_end);
  }
  bucket_ends.back() = steps;  // it ends with the tail, which the last step may write

  std::vector<Stage> stages;
  std::size_t bucket = 0;
  const auto give_buckets = [&](std::size_t before) {
    for (; bucket < bucket_ends.size() && bucket_ends[bucket] < before; ++bucket)
      stages.push_back({bucket_ends[bucket], {plan.buckets[bucket], SumTiming::overlapped}});
  };
  for (const Exchange& exchange : exchanges) {
    give_buckets(exchange.end);
    if (!stages.empty() && stages.back().end == exchange.end) stages.back().ready.timing = SumTiming::overlapped;
    stages.push_back({exchange.end, {exchange.range, SumTiming::blocking}});
  }
  give_buckets(steps + 1);
  return stages;
}

std::vector<Range> find_gaps(const Plan& plan, const Lowering& lowering, const std::vector<FinalRow>& finals) {
  std::vector<Range> written;
  written.reserve(finals.size() + 2 * lowering.norms.size());
  for (const FinalRow& final : finals) written.push_back(plan.table.rows[static_cast<std::size_t>(final.row)].range);
  const Index tail = plan.table.statistics.begin;
  for (const Norm& norm : lowering.norms) {
    if (!lowering.used(norm) || norm.frozen) continue;
    const NormStatistics& statistics = plan.table.norms[static_cast<std::size_t>(norm.table)];
    written.push_back({tail + statistics.mean.begin, statistics.mean.count});
    written.push_back({tail + statistics.variance.begin, statistics.variance.count});
  }
  std::sort(written.begin(), written.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });

  std::vector<Range> gaps;
  Index at = 0;
  for (const Range& range : written) {
    if (range.begin > at) gaps.push_back({at, range.begin - at});
    at = std::max(at, range.end());
  }
  if (plan.table.block() > at) gaps.push_back({at, plan.table.block() - at});
  return gaps;
}

std::vector<ExchangeRanges> exchange_ranges(const Plan& plan, const Lowering& lowering) {
  static_assert(2 * exchanged_parts + 2 == exchange_vectors, "the parameter table reserves what the norms use");
  std::vector<ExchangeRanges> of_table;
  Index begin = plan.table.exchange.begin;
  for (const NormStatistics& statistics : plan.table.norms) {
    const Index vector = statistics.frozen ? 0 : align_floats(statistics.mean.count);
    const Range forward{begin, 2 * exchanged_parts * vector}, backward{forward.end(), 2 * vector};
    of_table.push_back({forward, backward});
    begin = backward.end();
  }
  std::vector<ExchangeRanges> ranges;
  for (const Norm& norm : lowering.norms) ranges.push_back(of_table[static_cast<std::size_t>(norm.table)]);
  return ranges;
}

}  // namespace convoy::lowering
