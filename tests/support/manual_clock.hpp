// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>

#include "core/clock.hpp"

namespace convoy {

/// A clock that stands still until a test advances it, or code under test sleeps by it. Any thread may read it.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(double wall_seconds = 1e9) : wall_begin_(wall_seconds) {}

  Instant now() const override { return later(Instant{} + std::chrono::hours(1), seconds_); }
  double wall_seconds() const override { return wall_begin_ + seconds_; }
  void sleep(double seconds) override { advance(seconds); }
  void advance(double seconds) { seconds_ = seconds_ + seconds; }
  /// Seconds by which it was advanced.
  double seconds() const { return seconds_; }

 private:
  const double wall_begin_;
  std::atomic<double> seconds_{0};
};

}  // namespace convoy
