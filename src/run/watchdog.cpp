// SPDX-License-Identifier: Apache-2.0
#include "run/watchdog.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <thread>

#include "core/errors.hpp"
#include "core/progress.hpp"

namespace convoy {
namespace {

constexpr double leave_seconds = 15;
constexpr double longest_tick = 1, busy_share = 0.05, busy_factor = 10;
/// A tick that lasts this much longer than asked for: the process was stopped, or the machine too busy to judge.
constexpr double suspended_seconds = 1;

double tick_for(const WatchdogLimits& limits) {
  const double seconds = limits.seconds, warn = limits.warn_seconds;
  const double shortest = seconds > 0 && warn > 0 ? std::min(seconds, warn) : std::max(seconds, warn);
  return shortest > 0 ? std::clamp(shortest / 20, 0.02, longest_tick) : longest_tick;
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

/// What the thread knows of the main thread and of the process.
struct Watched {
  WatchdogLimits limits;
  Progress* progress = nullptr;
  std::array<char, 160> prefix{};
  clockid_t cpu_clock = CLOCK_MONOTONIC;
  long thread = 0;

  double cpu_seconds() const {
    timespec used{};
    clock_gettime(cpu_clock, &used);
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
  }

  void report(const char* level, double seconds, const ProgressSnapshot& at, const char* remedy) const {
    std::array<char, 900> line{};
    const std::size_t begin = std::strlen(prefix.data());
    std::memcpy(line.data(), prefix.data(), begin);
    const int length =
        describe_stall(line.data() + begin, line.size() - begin, level, seconds, at, state_of(thread), remedy);
    if (::write(STDERR_FILENO, line.data(), begin + static_cast<std::size_t>(length)) < 0) return;  // nobody reads it
  }

  void run() const {
    StallJudge judge(limits, real_clock().now(), cpu_seconds(), progress->read());
    for (;;) {
      real_clock().sleep(judge.tick());
      const ProgressSnapshot at = progress->read();
      switch (judge.look(real_clock().now(), cpu_seconds(), at)) {
        case WatchdogAction::none:
          break;
        case WatchdogAction::warn:
          report("warning", judge.quiet_seconds(), at, "a file system or a driver may not answer");
          break;
        case WatchdogAction::stuck: {
          report(
              "error", judge.quiet_seconds(), at,
              "a file system or a driver does not answer: look at this host, then continue with --resume auto (--watchdog-seconds sets the time, 0 = never)");
          const int code = static_cast<int>(Exit::communication);
          progress->leave(code);
          real_clock().sleep(0.4);  // for the last heartbeat
          _exit(code);
        }
        case WatchdogAction::leave:
          _exit(at.exit);
      }
    }
  }
};

}  // namespace

StallJudge::StallJudge(const WatchdogLimits& limits, Instant now, double cpu_seconds, const ProgressSnapshot& at)
    : limits_(limits),
      tick_(tick_for(limits)),
      looked_(now),
      moved_(now),
      alive_(now),
      cpu_seconds_(cpu_seconds),
      marks_(at.marks) {}

WatchdogAction StallJudge::look(Instant now, double cpu_seconds, const ProgressSnapshot& at) {
  const double elapsed = seconds_between(looked_, now);
  if (elapsed > tick_ + suspended_seconds || at.marks != marks_) {
    moved_ = alive_ = now;
    warned_ = false;
  } else if (at.activity != Activity::ending && cpu_seconds - cpu_seconds_ > busy_share * elapsed) {
    alive_ = now;  // at the end the main thread waits inside MPI, which spins
  }
  looked_ = now;
  marks_ = at.marks;
  cpu_seconds_ = cpu_seconds;
  const double idle = seconds_between(alive_, now), still = seconds_between(moved_, now);
  quiet_ = idle;
  if (at.exit > 0 && at.exit != static_cast<int>(Exit::stopped)) {
    // It has said why and ends the job; where MPI can't do even that, this process leaves alone.
    return still >= leave_seconds ? WatchdogAction::leave : WatchdogAction::none;
  }
  if (limits_.seconds > 0 && (idle >= limits_.seconds || still >= busy_factor * limits_.seconds)) {
    quiet_ = std::max(idle, still);
    return WatchdogAction::stuck;
  }
  if (limits_.warn_seconds <= 0 || idle < limits_.warn_seconds || warned_) return WatchdogAction::none;
  warned_ = true;
  return WatchdogAction::warn;
}

int describe_stall(char* to, std::size_t capacity, const char* level, double seconds, const ProgressSnapshot& at,
                   char thread_state, const char* remedy) {
  std::array<char, 320> call{};
  describe_longest_io(call.data(), call.size());
  std::array<char, 64> position{};
  if (at.epoch > 0) {
    std::snprintf(position.data(), position.size(), ", epoch %lld, step %lld", static_cast<long long>(at.epoch),
                  static_cast<long long>(at.step));
  }
  const char* operation = at.operation.data();
  const bool both = operation[0] != 0 && call[0] != 0;
  const char* nothing = operation[0] == 0 && call[0] == 0 ? "no operation known" : "";
  const int length =
      std::snprintf(to, capacity, "%s: no progress for %.1f s in phase %s%s (%s%s%s%s; main thread in state %c); %s\n",
                    level, seconds, name_of(at.activity), position.data(), operation, both ? ", " : "", call.data(),
                    nothing, thread_state, remedy);
  return std::clamp(length, 0, static_cast<int>(capacity) - 1);
}

void start_watchdog(const WatchdogLimits& limits, Progress& progress, const std::string& prefix) {
  if (limits.seconds <= 0) return;
  Watched watched{.limits = limits, .progress = &progress, .thread = ::syscall(SYS_gettid)};
  std::strncpy(watched.prefix.data(), prefix.c_str(), watched.prefix.size() - 1);
  if (pthread_getcpuclockid(pthread_self(), &watched.cpu_clock) != 0) return;
  std::thread([watched] { watched.run(); }).detach();
}

}  // namespace convoy
