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

  /// The end of what is queued in the stream. Polls where all slots are under way.
  Event record(cudaStream_t stream);
  /// The same in a stream that is being captured: a place in the graph, for follow() within the same capture only.
  Event record_captured(cudaStream_t stream);
  /// Never blocks. Throws Error(internal) for an event of a capture.
  bool done(Event event);
  /// The stream waits for the event; nothing to do where that is known to have passed.
  void follow(cudaStream_t stream, Event event);
  /// The capture has ended: its events may be used by the next one.
  void forget_captured() { captured_used_ = 0; }

 private:
  static constexpr std::uint64_t captured_bit = std::uint64_t{1} << 63;
  struct Slot {
    cudaEvent_t event = nullptr;
    std::uint64_t id = 0;
    bool passed = true;
  };
  Slot& slot(std::uint64_t id) { return slots_[id % slots_.size()]; }
  bool ask(Slot& slot);

  std::vector<Slot> slots_;
  std::uint64_t last_ = 0;
  std::vector<cudaEvent_t> captured_;
  std::size_t captured_used_ = 0;
};

}  // namespace convoy::cuda
