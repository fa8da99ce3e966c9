// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <thread>

#include "core/clock.hpp"

namespace convoy {

/// A clock that stands still until a test advances it, or code under test sleeps or waits by it. Any thread may read
/// it.
class ManualClock final : public Clock {
 public:
  /// Every look at the clock advances it by `tick`, for loops that wait without sleeping.
  explicit ManualClock(double tick = 0) : tick_(tick) {}
  void set_tick(double tick) { tick_ = tick; }

  Instant now() const override { return later(Instant{} + std::chrono::hours(1), seconds_ += tick_); }
  double wall_seconds() const override { return 1e9 + seconds_; }
  void sleep(double seconds) override {
    advance(seconds);
    std::this_thread::yield();  // what is slept for may need this core
  }
  bool wait(std::condition_variable&, std::unique_lock<std::mutex>& lock, double seconds,
            const std::function<bool()>& condition) override {
    if (condition()) return true;
    advance(seconds);
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
    return condition();
  }
  void advance(double seconds) { seconds_ += seconds; }
  /// Seconds by which it was advanced.
  double seconds() const { return seconds_; }

 private:
  std::atomic<double> tick_;
  mutable std::atomic<double> seconds_{0};
};

}  // namespace convoy
