// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "core/types.hpp"

namespace convoy {

/// A block of memory in use from one phase to another, both included.
struct Lifetime {
  Index bytes = 0;
  int first = 0, last = 0;
};

struct Placement {
  std::vector<Index> offsets;  ///< bytes, per lifetime, on 64
  Index total_bytes = 0;
};

/// Blocks whose lifetimes overlap don't overlap in memory. Largest first, each at the lowest place that is free.
Placement place(const std::vector<Lifetime>& lifetimes);

}  // namespace convoy
