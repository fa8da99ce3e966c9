// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "backend/backend.hpp"
#include "backend/cuda/kernels/types.hpp"
#include "backend/cuda/runtime/queue.hpp"

namespace convoy::cuda {

/// The counters on their way to the host. Kernels add to device(); a snapshot takes what is there and starts it anew,
/// in stream order, so nothing is lost however late the host looks.
class CountersOnDevice {
 public:
  explicit CountersOnDevice(Queue& queue);
  Counters* device() const { return device_; }
  /// Polls where all slots hold snapshots that have not been taken.
  Event snapshot();
  /// The sum of all snapshots since the last call; their events have passed. Without one: what is counted so far is
  /// dropped.
  Counters take();

 private:
  void start_anew();

  static constexpr std::size_t slots = 4;
  Queue& queue_;
  Counters* device_;
  Counters* host_;  ///< pinned: slots, then an empty one to start from
  std::array<Event, slots> copied_{};
  std::size_t taken_ = 0, made_ = 0;
  Counters sum_;
};

}  // namespace convoy::cuda
