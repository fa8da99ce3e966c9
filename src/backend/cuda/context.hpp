// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "backend/cuda/filter_copies.hpp"
#include "backend/cuda/graphs/library.hpp"
#include "backend/cuda/runtime/queue.hpp"

namespace convoy::cuda {

/// What the backend lends to programs and updaters; outlives them.
struct Context {
  Queue& queue;
  Library& cudnn;
  FilterCopies& copies;
  const StepNumbers* step;                           ///< device memory, set_step's
  Counters* counters;                                ///< device memory, counters
  const std::vector<const std::uint8_t*>& resident;  ///< device memory, images of keep_resident
};

}  // namespace convoy::cuda
