// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/types.hpp"

namespace convoy {

/// Does the parts of saves one after another on a thread of its own. Parts are numbered from 1 in the order in which
/// they come. Where HDF5 can't be used by two threads they are done at once, by the caller.
class Writer {
 public:
  explicit Writer(Clock& clock = real_clock());
  /// Waits for the part under way, 10 s at most; parts not begun are dropped.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  Index submit(std::function<void()> part);
  /// All parts up to this one are done, well or not.
  Index finished() const { return finished_; }
  /// Waits a moment for a part; true: it is done.
  bool wait_for(Index part, double seconds);

  struct Failure {
    Index part = 0;
    Exit code = Exit::ok;
    std::string text;
  };
  /// What went wrong with a finished part, asked for once; code ok: nothing.
  Failure take_failure(Index part);

 private:
  void run();
  void perform(Index part, const std::function<void()>& body);

  Clock& clock_;
  std::mutex guard_;
  std::condition_variable work_, done_;
  std::deque<std::function<void()>> waiting_;
  std::vector<Failure> failures_;
  bool ending_ = false;
  Index submitted_ = 0;
  std::atomic<Index> finished_{0};
  std::thread thread_;
};

}  // namespace convoy
