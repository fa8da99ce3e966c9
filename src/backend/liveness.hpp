// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "core/types.hpp"

namespace convoy {

/// A block of memory in use from one phase or step to another, both included.
struct Lifetime {
  Index bytes = 0;
  int first = 0, last = 0;
};

struct Placement {
  std::vector<Index> offsets;  ///< bytes, per lifetime, on 64
  Index total_bytes = 0;
};

/// Blocks whose lifetimes overlap don't overlap in memory. Largest first, each at the lowest place that is free.
inline Placement place(const std::vector<Lifetime>& lifetimes) {
  constexpr Index line = 64;
  const auto rounded = [&](Index bytes) { return (bytes + line - 1) / line * line + 4 * line; };
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
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
      if (mine.first <= theirs.last && theirs.first <= mine.last)
        taken.push_back({result.offsets[other], rounded(theirs.bytes)});
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

}  // namespace convoy
