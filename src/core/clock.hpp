// SPDX-License-Identifier: Apache-2.0
// The time. Code that waits, or that judges how long something takes, is given a Clock, and tests give it one that they
// advance by hand (tests/support/manual_clock.hpp).
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace convoy {

/// A moment by a clock that never goes back.
using Instant = std::chrono::steady_clock::time_point;

inline double seconds_between(Instant from, Instant to) { return std::chrono::duration<double>(to - from).count(); }
inline Instant later(Instant from, double seconds) {
  return from + std::chrono::duration_cast<Instant::duration>(std::chrono::duration<double>(seconds));
}

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant now() const = 0;
  /// Seconds since 1970, by the clock of this host.
  virtual double wall_seconds() const = 0;
  virtual void sleep(double seconds) = 0;
  /// Waits until `condition` holds, but no longer than that. Returns whether it holds. `lock` is held meanwhile as by
  /// std::condition_variable.
  virtual bool wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, double seconds,
                    const std::function<bool()>& condition) = 0;
};

/// The machine's own.
Clock& real_clock();

inline double seconds_since(Instant begin) { return seconds_between(begin, real_clock().now()); }

}  // namespace convoy
