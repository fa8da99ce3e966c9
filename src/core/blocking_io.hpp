// SPDX-License-Identifier: Apache-2.0
// Calls that may never return, since a file system or a driver does not answer: whoever makes one says so, and the
// watchdog can name the file.
#pragma once
#include <cstddef>
#include <string>

namespace convoy {

/// What this thread writes, it writes by the clock, whatever the main thread does: its calls are no progress for the
/// watchdog.
void io_is_no_progress();

/// A call that is under way, from any thread, until the end of the scope. Both its ends are progress for the watchdog.
class BlockingIo {
 public:
  /// `verb`: `read`. Where too many are under way at once, this one is not seen.
  BlockingIo(const char* verb, const std::string& path);
  ~BlockingIo();
  BlockingIo(const BlockingIo&) = delete;
  BlockingIo& operator=(const BlockingIo&) = delete;

 private:
  int slot_;
};

/// Writes `read of '/data/train-00003.h5' for 61.2 s` about the call that lasts longest; 0 where none is under way.
/// Allocates nothing and never waits.
std::size_t describe_longest_io(char* to, std::size_t capacity);

}  // namespace convoy
