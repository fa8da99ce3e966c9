// SPDX-License-Identifier: Apache-2.0
#include "core/clock.hpp"

#include <algorithm>
#include <thread>

namespace convoy {
namespace {

/// More would not fit into the clock's integers.
std::chrono::duration<double> limited(double seconds) {
  constexpr double longest_wait_seconds = 1e9;  // 30 years
  return std::chrono::duration<double>(std::min(seconds, longest_wait_seconds));
}

class RealClock final : public Clock {
 public:
  Instant now() const override { return std::chrono::steady_clock::now(); }
  double wall_seconds() const override {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
  bool wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, double seconds,
            const std::function<bool()>& condition) override {
    return changed.wait_for(lock, limited(seconds), condition);
  }
  void sleep(double seconds) override { std::this_thread::sleep_for(limited(seconds)); }
};

}  // namespace

Clock& real_clock() {
  static RealClock clock;
  return clock;
}

}  // namespace convoy
