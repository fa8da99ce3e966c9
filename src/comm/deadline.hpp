// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "comm/communicator.hpp"
#include "core/clock.hpp"

namespace convoy {

/// What a wait does when it lasts: shared by all waits of a communicator.
struct StallPolicy {
  StallLimits deadline;
  int rank = 0;
  std::function<StallReport()> explain;  ///< empty: nothing is known of other ranks
};

/// One wait of the host. The loop is `while (!arrived()) patience.pause(what);`
class Deadline {
 public:
  explicit Deadline(const StallPolicy& policy) : policy_(policy) { restart(); }
  ~Deadline() { settle(); }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  void restart();
  /// Adds the time since the last call, and at most a second of it: what the host spent elsewhere is nobody's delay.
  /// Warns once at warn_seconds, throws Error(communication) at abort_seconds. Where another rank speaks for the job
  /// this one does not warn, and gives up a little later: by then that one has ended the job.
  void spend(const char* what);
  /// spend(), and gives the core away: first not at all, since most operations take microseconds; then by yielding,
  /// which lets a rank on the same core go on; after long by sleeping.
  void pause(const char* what);
  double waited_seconds() const { return waited_; }

 private:
  /// Tells the pulse that the wait is over, where it was told of it.
  void settle();
  StallReport report() const;
  void warn(const char* what);
  void give_up(const char* what);

  const StallPolicy& policy_;
  Instant last_;
  double waited_ = 0, grace_ = 0;
  bool warned_ = false, shown_ = false;
};

}  // namespace convoy
