// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "comm/communicator.hpp"

namespace convoy {

/// What a wait does when it lasts: shared by all waits of a communicator.
struct StallPolicy {
  Deadline deadline;
  /// Who did not arrive, where something is known about the other ranks; empty text: nothing is.
  std::function<std::string()> explain;
};

/// One wait of the host. The loop is `while (!arrived()) patience.pause(what);`
class Patience {
 public:
  explicit Patience(const StallPolicy& policy) : policy_(policy) { restart(); }

  void restart();
  /// Adds the time since the last call, and at most a second of it: what the host spent elsewhere is nobody's delay.
  /// Warns once at warn_seconds, throws Error(communication) at abort_seconds.
  void spend(const char* what);
  /// spend(), and gives the core away: first not at all, since most operations take microseconds; then by yielding,
  /// which lets a rank on the same core go on; after long by sleeping.
  void pause(const char* what);
  double waited_seconds() const { return waited_; }

 private:
  using Clock = std::chrono::steady_clock;
  const StallPolicy& policy_;
  Clock::time_point last_;
  double waited_ = 0;
  bool warned_ = false;
};

}  // namespace convoy
