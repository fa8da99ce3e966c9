// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cpu/schedule.hpp"

namespace convoy::cpu {

void find_lifetimes(Schedule& schedule) {
  for (std::size_t k = 0; k < schedule.phases.size(); ++k) {
    const auto touch = [&](const Buffer& buffer) {
      if (buffer.where != Buffer::Where::stored) return;
      StoredTensor& tensor = schedule.tensors[static_cast<std::size_t>(buffer.index)];
      if (tensor.first_phase < 0) tensor.first_phase = static_cast<int>(k);
      tensor.last_phase = static_cast<int>(k);
    };
    for (const Action& action : schedule.phases[k].actions) {
      for (const Buffer& buffer : action.in) touch(buffer);
      touch(action.out);
      touch(action.extra);
    }
  }
}

std::vector<Stage> make_stages(const Plan& plan, const Lowering& lowering, const Schedule& schedule, Mode mode) {
  std::vector<Stage> stages;
  const std::size_t phases = schedule.phases.size();
  if (mode != Mode::train) return {{phases, {}}};

  const auto overlaps = [](const Range& a, const Range& b) { return a.begin < b.end() && b.begin < a.end(); };
  std::vector<std::size_t> bucket_phase;  // the phase after which each bucket is final
  for (const Range& bucket : plan.buckets) {
    std::size_t last = bucket_phase.empty() ? 0 : bucket_phase.back();
    for (std::size_t k = 0; k < phases; ++k)
      for (const int row : schedule.phases[k].final_rows)
        if (overlaps(plan.table.rows[static_cast<std::size_t>(row)].range, bucket)) last = std::max(last, k);
    bucket_phase.push_back(last);
  }
  if (!bucket_phase.empty()) bucket_phase.back() = phases - 1;  // it ends with the tail

  std::vector<Range> exchange(lowering.norms.size());
  Index begin = plan.table.exchange.begin;
  for (std::size_t i = 0; i < plan.table.norms.size(); ++i) {
    const Index floats = 4 * align_floats(plan.table.norms[i].mean.count);
    for (std::size_t n = 0; n < lowering.norms.size(); ++n)
      if (lowering.norms[n].table == static_cast<int>(i)) exchange[n] = {begin, floats};
    begin += floats;
  }

  std::size_t bucket = 0;
  for (std::size_t k = 0; k < phases; ++k) {
    const auto block = [&](int norm, bool backward) {
      if (!plan.sync_bn) return;
      const Range slice = exchange[static_cast<std::size_t>(norm)];
      const Index half = slice.count / 2;
      // Sums that are needed together are waited for once.
      if (!stages.empty() && stages.back().end_phase == k + 1) stages.back().ready.timing = SumTiming::overlapped;
      stages.push_back({k + 1, {{slice.begin + (backward ? half : 0), half}, SumTiming::blocking}});
    };
    for (const int value : schedule.phases[k].statistics_of)
      for (const int norm : lowering.values[static_cast<std::size_t>(value)].norms) block(norm, false);
    for (const int norm : schedule.phases[k].products_of) block(norm, true);
    for (; bucket < bucket_phase.size() && bucket_phase[bucket] == k; ++bucket)
      stages.push_back({k + 1, {plan.buckets[bucket], SumTiming::overlapped}});
  }
  if (stages.empty() || stages.back().end_phase != phases) stages.push_back({phases, {}});
  return stages;
}

}  // namespace convoy::cpu
