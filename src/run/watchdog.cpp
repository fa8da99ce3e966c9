// SPDX-License-Identifier: Apache-2.0
#include "run/watchdog.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>

#include "core/blocking_io.hpp"
#include "core/errors.hpp"
#include "core/progress.hpp"

namespace convoy {
namespace {

constexpr double abort_seconds = 15;
constexpr double longest_tick = 1, busy_share = 0.05, busy_patience = 10;
/// A tick that lasts this much longer than asked for: the process was stopped, or the machine too busy to judge.
constexpr double suspended_seconds = 1;

struct Watched {
  std::atomic<double> seconds{0}, warn_seconds{0};
  std::array<char, 160> speaker{};
  clockid_t cpu_clock = CLOCK_MONOTONIC;
  long thread = 0;
  bool running = false;
};

Watched& watched() {
  static Watched instance;
  return instance;
}

double read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// D: in the kernel, not to be interrupted; S: sleeping in a call; R: running. From /proc, which no dead file system
/// can block.
char state_of(long thread) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/self/task/%ld/stat", thread);
  const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return '?';
  std::array<char, 512> text{};
  const ssize_t got = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  const char* name_ends = got > 0 ? std::strrchr(text.data(), ')') : nullptr;
  return name_ends != nullptr && name_ends[1] == ' ' ? name_ends[2] : '?';
}

using Line = std::array<char, 900>;

void say(const Line& line, int length) {
  const auto bytes = std::min(static_cast<std::size_t>(std::max(length, 0)), line.size() - 1);
  if (::write(STDERR_FILENO, line.data(), bytes) < 0) return;  // nobody left to tell
}

/// `no progress for 61.2 s in phase data, epoch 1, step 20 (read of '/data/x.h5' for 61.1 s; main thread in state D)`.
int describe(Line& line, const char* level, double seconds, const char* remedy) {
  const Watched& w = watched();
  const ProgressSnapshot at = progress().read();
  std::array<char, 320> call{};
  describe_longest_io(call.data(), call.size());
  std::array<char, 64> position{};
  if (at.epoch > 0)
    std::snprintf(position.data(), position.size(), ", epoch %lld, step %lld", static_cast<long long>(at.epoch),
                  static_cast<long long>(at.step));
  const char* operation = at.operation.data();
  const bool both = operation[0] != 0 && call[0] != 0;
  const char* nothing = operation[0] == 0 && call[0] == 0 ? "no operation known" : "";
  return std::snprintf(line.data(), line.size(),
                       "%s%s: no progress for %.1f s in phase %s%s (%s%s%s%s; main thread in "
                       "state %c); %s\n",
                       w.speaker.data(), level, seconds, name_of(at.activity), position.data(), operation,
                       both ? ", " : "", call.data(), nothing, state_of(w.thread), remedy);
}

void watch() {
  const Watched& w = watched();
  const auto cpu = [&w] { return read_clock(w.cpu_clock); };
  double last = read_clock(CLOCK_MONOTONIC), moved = last, alive = last, cpu_then = cpu();
  std::uint64_t beats = progress().read().marks;
  bool warned = false;
  for (;;) {
    const double limit = w.seconds.load(), warn = w.warn_seconds.load();
    const double shortest = limit > 0 && warn > 0 ? std::min(limit, warn) : std::max(limit, warn);
    const double tick = shortest > 0 ? std::clamp(shortest / 20, 0.02, longest_tick) : longest_tick;
    std::this_thread::sleep_for(std::chrono::duration<double>(tick));
    const double now = read_clock(CLOCK_MONOTONIC), used = cpu();
    const ProgressSnapshot at = progress().read();
    if (now - last > tick + suspended_seconds || at.marks != beats) {
      moved = alive = now;
      warned = false;
    } else if (at.activity != Activity::ending && used - cpu_then > busy_share * (now - last)) {
      alive = now;  // at the end the main thread waits inside MPI, which spins
    }
    last = now;
    beats = at.marks;
    cpu_then = used;
    Line line{};
    const double idle = now - alive;
    if (at.exit > 0 && at.exit != static_cast<int>(Exit::stopped)) {
      // It has said why and ends the job; where MPI can't do even that, this process leaves alone.
      if (now - moved >= abort_seconds) _exit(at.exit);
      continue;
    }
    if (limit > 0 && (idle >= limit || now - moved >= busy_patience * limit)) {
      say(line, describe(line, "error", std::max(idle, now - moved),
                         "a file system or a driver does not answer: look at this host, then go on with --resume auto "
                         "(--watchdog-seconds sets the time, 0 = never)"));
      progress().leave(static_cast<int>(Exit::communication));
      std::this_thread::sleep_for(std::chrono::milliseconds(400));  // for the last heartbeat
      _exit(static_cast<int>(Exit::communication));
    }
    if (warn > 0 && idle >= warn && !warned) {
      warned = true;
      say(line, describe(line, "warning", idle, "a file system or a driver may not answer"));
    }
  }
}

}  // namespace

void start_watchdog(const WatchdogSpec& spec) {
  Watched& w = watched();
  w.seconds.store(spec.seconds);
  w.warn_seconds.store(spec.warn_seconds);
  if (w.running || spec.seconds <= 0) return;
  std::strncpy(w.speaker.data(), spec.speaker.c_str(), w.speaker.size() - 1);
  if (pthread_getcpuclockid(pthread_self(), &w.cpu_clock) != 0) return;
  w.thread = ::syscall(SYS_gettid);
  w.running = true;
  std::thread(watch).detach();
}

}  // namespace convoy
