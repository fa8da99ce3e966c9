// SPDX-License-Identifier: Apache-2.0
#include "backend/lowering/memory_plan.hpp"

#include <algorithm>
#include <cstddef>

namespace convoy::lowering {

Placement place(const std::vector<Lifetime>& lifetimes, Index alignment) {
  constexpr Index apart = 256;  // bytes between blocks, a multiple of every alignment in use
  const auto rounded = [&](Index bytes) { return (bytes + alignment - 1) / alignment * alignment + apart; };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < lifetimes.size(); ++i)
    if (lifetimes[i].first >= 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });

  Placement result;
  result.offsets.assign(lifetimes.size(), 0);
  std::vector<std::size_t> placed;
  for (const std::size_t item : order) {
    const Lifetime& mine = lifetimes[item];
    std::vector<Range> taken;
    for (const std::size_t other : placed) {
      const Lifetime& theirs = lifetimes[other];
      if (mine.meets(theirs)) taken.push_back({result.offsets[other], rounded(theirs.bytes)});
    }
    std::sort(taken.begin(), taken.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    Index at = 0;
    for (const Range& range : taken) {
      if (at + rounded(mine.bytes) <= range.begin) break;
      at = std::max(at, range.end());
    }
    result.offsets[item] = at;
    result.total_bytes = std::max(result.total_bytes, at + rounded(mine.bytes));
    placed.push_back(item);
  }
  return result;
}

}  // namespace convoy::lowering
