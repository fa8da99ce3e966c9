// SPDX-License-Identifier: Apache-2.0
#include "comm/deadline.hpp"

#include <sched.h>

#include <algorithm>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"

namespace convoy {
namespace {

constexpr double spin_seconds = 20e-6, yield_seconds = 0.2, nap_seconds = 50e-6, longest_gap_seconds = 1;
/// What the others give the rank that speaks for the job to end it, in seconds and as a share of the deadline.
constexpr double longest_grace_seconds = 3, grace_share = 0.5;

}  // namespace

void Deadline::restart() {
  settle();
  last_ = policy_.clock->now();
  waited_ = grace_ = 0;
  warned_ = false;
}

void Deadline::settle() {
  if (shown_) progress().wait_ends();
  shown_ = false;
}

StallReport Deadline::report() const {
  StallReport report;
  if (policy_.explain) {
    report = policy_.explain();
  } else {
    report.speaker = policy_.rank == 0;
  }
  if (report.missing.empty()) report.missing = "a rank has not arrived";
  return report;
}

void Deadline::warn(const char* what) {
  warned_ = true;
  const StallReport stall = report();
  if (!stall.speaker) return;
  const double abort_seconds = policy_.limits.abort_seconds;
  const std::string end =
      abort_seconds > 0 ? fmt::format("the job ends after {:g} s", abort_seconds) : "it waits without limit";
  log::warn("waiting in {} for {} since {:.1f} s ({}); {}", name_of(progress().activity()), what, waited_,
            stall.missing, end);
}

void Deadline::give_up(const char* what) {
  const StallReport stall = report();
  if (!stall.speaker && grace_ == 0) {
    grace_ = std::min(longest_grace_seconds, grace_share * policy_.limits.abort_seconds);
    return;
  }
  fail(Exit::communication,
       "waited {:.1f} s in {} for {} ({}); look at those ranks and their hosts, or raise --stall-abort-seconds",
       waited_, name_of(progress().activity()), what, stall.missing);
}

void Deadline::spend(const char* what) {
  const auto now = policy_.clock->now();
  waited_ += std::min(seconds_between(last_, now), longest_gap_seconds);
  last_ = now;
  progress().mark();
  const StallLimits& limits = policy_.limits;
  if (limits.abort_seconds > 0 && waited_ >= limits.abort_seconds + grace_) give_up(what);
  if (limits.warn_seconds > 0 && waited_ >= limits.warn_seconds && !warned_) warn(what);
}

void Deadline::pause(const char* what) {
  spend(what);
  if (waited_ < spin_seconds) return;
  if (waited_ < yield_seconds) {
    sched_yield();
    return;
  }
  if (!shown_) progress().wait_begins(what);
  shown_ = true;
  policy_.clock->sleep(nap_seconds);
}

}  // namespace convoy
