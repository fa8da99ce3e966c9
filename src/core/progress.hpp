// SPDX-License-Identifier: Apache-2.0
// Where the main thread is. It writes a few atomics as it goes; the threads that watch it read them, and never wait for
// it.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/trace.hpp"
#include "core/types.hpp"

namespace convoy {

enum class Activity : std::uint8_t { start_up, data, compute, communication, evaluation, checkpoint, ending };
/// `start-up`, `data`, `forward/backward`, `communication`, `evaluation`, `checkpoint`, `ending`.
const char* name_of(Activity activity);

/// A short text that one thread writes and any thread reads, without locks: the reader sees one of the texts, whole, or
/// (while it is being written again and again) an empty one.
class SharedText {
 public:
  static constexpr std::size_t capacity = 64;  ///< longer texts are cut; the closing 0 is counted
  using Copy = std::array<char, capacity>;
  void store(const char* text);
  Copy load() const;

 private:
  static constexpr std::size_t words = capacity / sizeof(std::uint64_t);
  std::atomic<std::uint32_t> version_{0};  ///< odd while it is being written
  std::array<std::atomic<std::uint64_t>, words> words_{};
};

/// A moment's view of the main thread. Epoch and step count from 1 and are those it works on; 0: before the first.
struct ProgressSnapshot {
  Activity activity = Activity::start_up;
  Index epoch = 0, step = 0;
  SharedText::Copy operation{};  ///< what it waits for, or does
  bool waiting = false;          ///< for other ranks or the device, under a deadline
  std::uint64_t waits = 0;       ///< waits so far
  std::uint64_t marks = 0;       ///< grows whenever the main thread moves
  int exit = -1;                 ///< the code with which this process is about to leave
};

class Progress {
 public:
  // Of the main thread.
  void enter(Activity activity) {
    operation_.store("");
    activity_.store(activity, std::memory_order_relaxed);
    mark();
  }
  Activity activity() const { return activity_.load(std::memory_order_relaxed); }
  void at(Index epoch, Index step) {
    epoch_.store(epoch, std::memory_order_relaxed);
    step_.store(step, std::memory_order_relaxed);
    mark();
  }
  /// What it does now, where the phase does not say it.
  void doing(const char* operation) {
    operation_.store(operation);
    mark();
  }
  void wait_begins(const char* what) {
    operation_.store(what);
    waits_.fetch_add(1, std::memory_order_relaxed);
    waiting_.store(true, std::memory_order_relaxed);
    mark();
  }
  void wait_ends() {
    waiting_.store(false, std::memory_order_relaxed);
    operation_.store("");
    mark();
  }
  void leave(int exit_code) { exit_.store(exit_code, std::memory_order_relaxed); }

  /// Any thread: something that the main thread waits for has moved.
  void mark() { marks_.fetch_add(1, std::memory_order_relaxed); }
  ProgressSnapshot read() const;

 private:
  std::atomic<Activity> activity_{Activity::start_up};
  std::atomic<Index> epoch_{0}, step_{0};
  SharedText operation_;
  std::atomic<bool> waiting_{false};
  std::atomic<std::uint64_t> waits_{0}, marks_{0};
  std::atomic<int> exit_{-1};
};

/// The process's own.
Progress& progress();

/// The main thread is in another phase until the end of the scope, which a trace shows.
class ActivityScope {
 public:
  explicit ActivityScope(Activity activity) : before_(progress().activity()), span_(name_of(activity)) {
    progress().enter(activity);
  }
  ~ActivityScope() { progress().enter(before_); }
  ActivityScope(const ActivityScope&) = delete;
  ActivityScope& operator=(const ActivityScope&) = delete;

 private:
  Activity before_;
  TraceSpan span_;
};

// Calls that may never return, since a file system or a driver does not answer: whoever makes one says so, and the
// watchdog can name the file.

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
