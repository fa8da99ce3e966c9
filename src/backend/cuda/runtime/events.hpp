// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime_api.h>

#include <vector>

#include "core/device.hpp"

namespace convoy::cuda {

/// Events by number, kept in a ring, so that a step makes none. A number that fell out of the ring has passed.
class EventRing {
 public:
  EventRing();
  ~EventRing();
  EventRing(const EventRing&) = delete;
  EventRing& operator=(const EventRing&) = delete;

  /// The end of what is queued in the stream. In a stream that is being captured the event is part of the graph: only
  /// follow() within the same capture may use it.
  Event record(cudaStream_t stream);
  /// Never blocks. Throws Error(internal) for an event of a capture.
  bool done(Event event);
  /// The stream waits for the event; nothing to do where it has passed.
  void follow(cudaStream_t stream, Event event);
  /// Events of the capture that has ended may be used again.
  void forget_captured();

 private:
  static constexpr std::uint64_t captured_bit = std::uint64_t{1} << 63;
  struct Slot {
    cudaEvent_t event = nullptr;
    std::uint64_t id = 0;
    bool passed = true;
  };
  Slot& slot(std::uint64_t id) { return slots_[id % slots_.size()]; }

  std::vector<Slot> slots_;
  std::uint64_t last_ = 0;
  std::vector<cudaEvent_t> captured_;
  std::size_t captured_used_ = 0;
};

}  // namespace convoy::cuda
