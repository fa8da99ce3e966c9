// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/collectives.hpp"
#include "core/clock.hpp"
#include "core/trace.hpp"

namespace convoy {

/// Seconds of one step; what is neither data, compute nor comm is `other`.
struct StepSeconds {
  double step = 0, data = 0, compute = 0, comm = 0;

  StepSeconds& operator+=(const StepSeconds& other) {
    step += other.step;
    data += other.data;
    compute += other.compute;
    comm += other.comm;
    return *this;
  }
};

/// launches: forward, backward and update. averages: what the replicas sum after them. device: the host waits for
/// work that was launched before. votes: the host waits for the other ranks. What the host waits for sums during
/// launches and averages is communication, the rest of them is computation, and so is the device's work.
enum class StepPart { launches, averages, device, votes };

/// Measures where the time of a step goes, on one rank.
class StepTimer {
 public:
  /// `group`: of the ranks of a host; null if nothing is summed there.
  StepTimer(Collectives& collectives, Collectives* group) : collectives_(collectives), group_(group) {}

  /// `step`: its number, from 1.
  void begin_step(Index step);
  /// Ends the step. `data`: seconds of it for which the loader kept the step waiting.
  StepSeconds end_step(double data);

  /// Counts the time until the end of the scope as a part of the step, and shows it in a trace.
  class Scope {
   public:
    Scope(StepTimer& timer, StepPart part);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StepTimer& timer_;
    StepPart part_;
    TraceSpan span_;
    Instant begin_;
  };

 private:
  double take_wait_seconds();

  Collectives& collectives_;
  Collectives* group_;
  Instant begin_;
  Index step_ = 0;
  double compute_ = 0, comm_ = 0;
};

}  // namespace convoy
