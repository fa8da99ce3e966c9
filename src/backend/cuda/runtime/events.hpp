// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime_api.h>

#include <vector>

#include "core/device.hpp"

namespace convoy::cuda {

/// Events by number, kept in a ring, so that a step makes none. A number that fell out of the ring has passed; so has
/// whatever was recorded in the same stream before an event that passed.
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
  /// The stream waits for the event; nothing to do where that is known to have passed, is the stream's own, or comes no
  /// later in its stream than one that the stream waited for.
  void follow(cudaStream_t stream, Event event);
  /// The capture has ended: its events may be used by the next one.
  void forget_captured();

 private:
  static constexpr std::uint64_t captured_bit = std::uint64_t{1} << 63;
  struct Slot {
    cudaEvent_t event = nullptr;
    std::uint64_t id = 0;
    cudaStream_t stream = nullptr;
  };
  Slot& slot(std::uint64_t id) { return slots_[id % slots_.size()]; }
  /// What `by` knows of a stream: the newest of its events that it waited for. Null: the host.
  struct Known {
    cudaStream_t by, of;
    std::uint64_t id;
  };
  static std::uint64_t& newest(std::vector<Known>& known, cudaStream_t by, cudaStream_t of);
  bool ask(const Slot& slot);
  static void wait(cudaStream_t stream, const Slot& slot, std::vector<Known>& known);

  std::vector<Slot> slots_;
  std::vector<Known> known_;
  std::uint64_t last_ = 0;
  std::vector<Slot> captured_;
  std::vector<Known> known_captured_;
  std::size_t captured_used_ = 0;
};

}  // namespace convoy::cuda
