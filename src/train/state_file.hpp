// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "checkpoint/fence.hpp"
#include "train/run_state.hpp"

namespace convoy {

/// Rank 0's state.json: a thread writes it every few seconds, so that a slow file system costs the steps nothing, at
/// once where this process is asked to stop, and at the end. The same thread looks for a newer attempt, after which it
/// writes nothing more. A file that can't be written is said once; it is tried again.
class StateFile {
 public:
  StateFile(std::string folder, Fence fence, RunState state);
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  /// The main thread came by: change(RunState&) notes what it has to tell. Allocates only what `change` does.
  template <class Change>
  void update(const Change& change) {
    const std::lock_guard lock(guard_);
    change(state_);
    state_.progressed = now();
    changed_ = true;
  }
  /// The same from another thread: no sign of progress of the main one.
  template <class Change>
  void note(const Change& change) {
    const std::lock_guard lock(guard_);
    change(state_);
    changed_ = true;
  }
  /// A newer attempt; 0: none has been seen.
  Index superseded_by() const { return superseded_by_; }

 private:
  static double now();
  void run();
  void write(const RunState& state);

  const std::string folder_;
  const Fence fence_;
  std::mutex guard_;
  std::condition_variable wake_;
  RunState state_;
  bool changed_ = true, ending_ = false;
  bool told_ = false;  ///< of the thread alone
  std::atomic<Index> superseded_by_{0};
  std::thread thread_;
};

}  // namespace convoy
