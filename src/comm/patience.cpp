// SPDX-License-Identifier: Apache-2.0
#include "comm/patience.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>

#include "core/log.hpp"

namespace convoy {
namespace {

constexpr double spin_seconds = 20e-6, yield_seconds = 0.2, longest_gap_seconds = 1;

std::string missing_ranks(const StallPolicy& policy) {
  const std::string known = policy.explain ? policy.explain() : std::string();
  return known.empty() ? "a rank has not arrived" : known;
}

}  // namespace

void Patience::restart() {
  last_ = Clock::now();
  waited_ = 0;
  warned_ = false;
}

void Patience::spend(const char* what) {
  const auto now = Clock::now();
  waited_ += std::min(std::chrono::duration<double>(now - last_).count(), longest_gap_seconds);
  last_ = now;
  const Deadline& deadline = policy_.deadline;
  if (deadline.abort_seconds > 0 && waited_ >= deadline.abort_seconds)
    fail(Exit::communication,
         "waited {:.1f} s for {} ({}); look for the first message of another rank, or raise --stall-abort-seconds",
         waited_, what, missing_ranks(policy_));
  if (deadline.warn_seconds > 0 && waited_ >= deadline.warn_seconds && !warned_) {
    warned_ = true;
    const std::string end = deadline.abort_seconds > 0
                                ? fmt::format("the job ends after {:g} s", deadline.abort_seconds)
                                : "it waits without limit";
    log::warn("waiting for {} since {:.1f} s ({}); {}", what, waited_, missing_ranks(policy_), end);
  }
}

void Patience::pause(const char* what) {
  spend(what);
  if (waited_ < spin_seconds) return;
  if (waited_ < yield_seconds) {
    sched_yield();
    return;
  }
  const timespec nap{0, 50'000};
  nanosleep(&nap, nullptr);
}

}  // namespace convoy
