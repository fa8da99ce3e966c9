// SPDX-License-Identifier: Apache-2.0
// What the threads of this process do and when, for a file that chrome://tracing and Perfetto show. While it is off, a
// span costs one load of an atomic.
#pragma once
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/types.hpp"

namespace convoy {

/// A row of the picture: the main thread, what travels between ranks, the thread that writes checkpoints, and from
/// `loaders` on one for each thread that prepares batches.
namespace trace_row {
constexpr int main = 1, sums = 2, saver = 3, loaders = 10;
std::string name_of(int row);
}  // namespace trace_row

struct TraceEvent {
  std::string name;
  int row = 0;
  Instant begin, end;
  Index number = -1;  ///< of the step; -1: it has none
  Index bytes = -1;   ///< -1: nothing is moved
};

class Trace {
 public:
  bool is_on() const { return on_.load(std::memory_order_relaxed); }
  /// From now on events are kept.
  void begin();
  /// Returns what has ended since begin(), and where its time 0 is.
  std::pair<Instant, std::vector<TraceEvent>> end();
  /// Any thread. An event that began before begin() is left out.
  void add(TraceEvent event);

 private:
  std::atomic<bool> on_{false};
  std::mutex mutex_;
  Instant begin_;
  std::vector<TraceEvent> events_;
};

/// The process's own.
Trace& trace();

/// An event until the end of the scope. `name` must outlive it; `number` stands behind it.
class TraceSpan {
 public:
  explicit TraceSpan(const char* name, int row = trace_row::main, Index number = -1)
      : name_(trace().is_on() ? name : nullptr), row_(row), number_(number) {
    if (name_ != nullptr) begin_ = real_clock().now();
  }
  ~TraceSpan() {
    if (name_ != nullptr) keep();
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  void keep() const;

  const char* name_;
  int row_;
  Index number_;
  Instant begin_;
};

}  // namespace convoy
