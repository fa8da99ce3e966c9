// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/backend.hpp"
#include "comm/communicator.hpp"
#include "metrics/counter_table.hpp"

namespace convoy {

/// What a device has counted, in the rows of counter_table.
struct CounterSums {
  CounterValues sums{};
  Index samples = 0;

  void add(const Counters& counters) {
    sums += {{counters.loss, static_cast<double>(counters.top1), static_cast<double>(counters.topk)}};
    samples += counters.samples;
  }
  /// Collective. Sums over the ranks; counts are whole numbers, which a double holds exactly.
  void reduce(Communicator& communicator, const char* what) {
    communicator.sum(std::span<double>(sums), what);
    communicator.sum(std::span<std::int64_t>(&samples, 1), what);
  }
  CounterValues values() const { return shown(sums, samples); }
};

}  // namespace convoy
