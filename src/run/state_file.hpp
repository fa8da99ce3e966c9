// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "checkpoint/fence.hpp"
#include "core/wall_clock.hpp"
#include "run/run_state.hpp"

namespace convoy {

/// Rank 0's state.json: a thread writes it every few seconds, so that a slow file system costs the steps nothing, at
/// once where this process is asked to stop, and at the end, for which it is waited 5 s. The same thread looks for a
/// newer attempt, after which it writes nothing more. A file that can't be written is said once; it is tried again.
class StateFile {
 public:
  StateFile(std::string folder, Fence fence, RunState state);
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  /// The main thread came by: change(RunState&) notes what it has to tell. Allocates only what `change` does.
  template <class Change>
  void update(const Change& change) {
    const std::lock_guard lock(shared_->guard);
    change(shared_->state);
    shared_->state.progressed = wall_seconds();
    shared_->changed = true;
  }
  /// The same from another thread: no sign of progress of the main one.
  template <class Change>
  void note(const Change& change) {
    const std::lock_guard lock(shared_->guard);
    change(shared_->state);
    shared_->changed = true;
  }
  /// A newer attempt; 0: none has been seen.
  Index superseded_by() const { return shared_->superseded_by; }

 private:
  /// Outlives this object where the thread hangs in a dead file system.
  struct Shared {
    std::string folder;
    Fence fence;
    std::mutex guard;  ///< of what follows; never held during a call to the file system
    std::condition_variable wake;
    RunState state;
    bool changed = true, ending = false, ended = false;
    std::atomic<Index> superseded_by{0};
    bool told = false;  ///< of the thread alone

    void run();
    void write(const RunState& copy);
  };

  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace convoy
