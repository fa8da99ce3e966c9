// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "comm/communicator.hpp"
#include "core/clock.hpp"

namespace convoy {

/// What a wait does when it lasts: shared by all waits of a communicator.
struct StallPolicy {
  StallLimits limits;
  int rank = 0;
  std::function<StallReport()> explain;  ///< empty: nothing is known of other ranks
  Clock* clock = &real_clock();
};

/// The deadline of one wait of the host. The loop is `while (!arrived()) deadline.pause(what);`
class Deadline {
 public:
  explicit Deadline(const StallPolicy& policy) : policy_(policy) { restart(); }
  ~Deadline() { settle(); }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  void restart();
  /// Adds the time since the last call, but at most a second of it: the host was busy elsewhere, and no rank is late.
  /// Warns once at warn_seconds, throws Error(communication) at abort_seconds. If another rank speaks for the job, this
  /// one does not warn, and gives up a little later, when that one should have ended the job.
  void spend(const char* what);
  /// spend(), and gives the core away: at first not at all, since most operations take microseconds; then by yielding,
  /// so that a rank on the same core goes on; at last by sleeping.
  void pause(const char* what);
  double waited_seconds() const { return waited_; }

 private:
  void settle();
  StallReport report() const;
  void warn(const char* what);
  void give_up(const char* what);

  const StallPolicy& policy_;
  Instant last_;
  double waited_ = 0, grace_ = 0;
  bool warned_ = false;
  bool shown_ = false;  ///< this wait stands in progress()
};

}  // namespace convoy
