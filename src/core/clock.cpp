// SPDX-License-Identifier: Apache-2.0
#include "core/clock.hpp"

#include <thread>

namespace convoy {
namespace {

class RealClock final : public Clock {
 public:
  Instant now() const override { return std::chrono::steady_clock::now(); }
  double wall_seconds() const override {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
  bool wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, double seconds,
            const std::function<bool()>& condition) override {
    return changed.wait_for(lock, std::chrono::duration<double>(seconds), condition);
  }
  void sleep(double seconds) override { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }
};

}  // namespace

Clock& real_clock() {
  static RealClock clock;
  return clock;
}

}  // namespace convoy
