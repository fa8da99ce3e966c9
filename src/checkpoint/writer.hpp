// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/types.hpp"

namespace convoy {

/// Does the parts of saves one after another on a thread of its own. Parts are numbered from 1 in the order in which
/// they come. Where HDF5 can't be used by two threads they are done at once, by the caller.
class Writer {
 public:
  explicit Writer(Clock& clock = real_clock());
  /// Waits for the part under way, 10 s at most, and drops parts that have not begun. If the part takes longer, its
  /// thread is left behind; it uses nothing of this object.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  Index submit(std::function<void()> part);
  /// All parts up to this one are done, well or not.
  Index finished() const;
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
  struct State;
  std::shared_ptr<State> state_;  ///< shared with the thread, which may outlive this object
  std::thread thread_;
};

}  // namespace convoy
