// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <mutex>
#include <string>

#include "checkpoint/fence.hpp"
#include "core/clock.hpp"
#include "run/run_state.hpp"

namespace convoy {

/// Rank 0's state.json. The main thread notes what has changed, and the supervisor's thread calls step(), so that a
/// slow file system costs the steps nothing. After a newer attempt has been seen nothing more is written. A write
/// failure is logged once and retried.
class StateFile {
 public:
  StateFile(std::string folder, Fence fence, RunState state, Clock& clock = real_clock());

  /// Notes progress of the main thread: change(RunState&) sets what is new. Allocates only what `change` does.
  template <class Change>
  void update(const Change& change) {
    const std::lock_guard lock(guard_);
    change(state_);
    state_.progressed = clock_.wall_seconds();
    changed_ = true;
  }
  /// The same, but no sign of progress of the main thread.
  template <class Change>
  void note(const Change& change) {
    const std::lock_guard lock(guard_);
    change(state_);
    changed_ = true;
  }
  /// A newer attempt; 0: none has been seen.
  Index superseded_by() const { return superseded_by_; }

  enum class Write : bool { if_due, now };
  /// Writes the file every few seconds, and at once when this process is asked to stop; looks for a newer attempt.
  void step(Write when);

 private:
  void write(const RunState& copy);

  const std::string folder_;
  const Fence fence_;
  Clock& clock_;

  std::mutex guard_;  ///< of these two; never held during a call to the file system
  RunState state_;
  bool changed_ = true;

  std::atomic<Index> superseded_by_{0};
  // The rest belongs to the thread that calls step().
  Instant written_{}, looked_{};
  bool failure_told_ = false;
};

}  // namespace convoy
