// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "core/types.hpp"

namespace convoy::lowering {

/// A block of memory, in use from its first to its last step, both included.
struct Lifetime {
  Index bytes = 0;
  int first = -1, last = -1;  ///< -1: no step touches it
  /// Steps touch it in their order.
  void touch(int step) {
    if (first < 0) first = step;
    last = step;
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
