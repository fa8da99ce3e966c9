// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <utility>

#include "comm/collectives.hpp"

namespace convoy {

/// Keeps the host at most two launches (turns, batches of an evaluation) ahead of the device. The wait for one that
/// hangs, since a rank died within a sum, happens here under the deadline, and not inside a driver whose queue is full.
class InFlightLimit {
 public:
  InFlightLimit(Device& device, Collectives& collectives) : device_(device), collectives_(collectives) {}

  /// After each: waits for the one before the last.
  void launched(const char* what) {
    collectives_.await(std::exchange(ends_[turn_], device_.record()), what);
    turn_ = 1 - turn_;
  }

 private:
  Device& device_;
  Collectives& collectives_;
  std::array<Event, 2> ends_{};
  std::size_t turn_ = 0;
};

}  // namespace convoy
