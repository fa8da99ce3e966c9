// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "core/types.hpp"

namespace convoy::lowering {

/// A block of memory, in use from its first to its last step, both included. It may have a gap, in which others take
/// its place: what lay in it is computed again.
struct Lifetime {
  Index bytes = 0;
  int first = -1, last = -1;         ///< -1: no step touches it
  int unused_from = 0, resumes = 0;  ///< the gap, `resumes` not included; empty: none
  /// Steps touch it in their order.
  void touch(int step) {
    if (first < 0) first = step;
    last = step;
  }
  /// The step computes it again: nothing needs it between the last step so far and this one.
  void resume(int step) {
    unused_from = last + 1;
    resumes = step;
    touch(step);
  }
  /// Some step needs both.
  bool meets(const Lifetime& other) const {
    const auto overlaps = [&](int begin, int end) {  // with a part of `other`
      const auto with = [&](int from, int to) { return begin < to && from < end; };
      if (other.unused_from >= other.resumes) return with(other.first, other.last + 1);
      return with(other.first, other.unused_from) || with(other.resumes, other.last + 1);
    };
    if (unused_from >= resumes) return overlaps(first, last + 1);
    return overlaps(first, unused_from) || overlaps(resumes, last + 1);
  }
};

struct Placement {
  std::vector<Index> offsets;  ///< one for each lifetime, in bytes; multiples of the alignment
  Index total_bytes = 0;
};

/// Blocks whose lifetimes overlap don't overlap in memory. Largest first, each at the lowest place that is free. A
/// block that no step touches takes no memory. `alignment` in bytes.
Placement place(const std::vector<Lifetime>& lifetimes, Index alignment = 64);

}  // namespace convoy::lowering
