// SPDX-License-Identifier: Apache-2.0
#include "core/stop.hpp"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/wall_clock.hpp"

namespace convoy {

const char* name_of_stop_signal(int signal) {
  return signal == SIGTERM ? "SIGTERM" : signal == SIGINT ? "SIGINT" : "SIGUSR1";
}

namespace {

constexpr std::int64_t doubled_signal_ms = 2000;
constexpr std::int64_t doubled_interrupt_ms = 200;  // no launcher sends SIGINT twice, a person does

// Written by the handler: lock-free atomics only.
std::atomic<int> received{0};
std::atomic<std::int64_t> received_at_ms{0};
std::atomic<double> stop_time{0};
std::atomic<const char*> text_before{nullptr}, text_then{nullptr};  // null: nobody is told
constexpr const char* another_interrupt = "; another one ends it at once";
constexpr const char* another_signal = "; another one, more than 2 s later, ends it at once";
static_assert(doubled_signal_ms == 2000);
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

/// Runs in the signal handler, where write(2) alone is safe.
void tell(int signal) {
  const char* then = text_then;
  if (then == nullptr) return;
  for (const char* part : {text_before.load(), name_of_stop_signal(signal), then,
                           signal == SIGINT ? another_interrupt : another_signal, "\n"}) {
    if (write(STDERR_FILENO, part, std::strlen(part)) < 0) return;
  }
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

std::int64_t monotonic_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void remember(int signal) {
  const std::int64_t now = monotonic_ms();
  if (received != 0) {
    if (now - received_at_ms < (signal == SIGINT ? doubled_interrupt_ms : doubled_signal_ms)) return;
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  received_at_ms = now;
  received = signal;
  const int error = errno;
  tell(signal);
  errno = error;
}

}  // namespace

const char* name_of(StopReason reason) {
  switch (reason) {
    case StopReason::none:
      return "";
    case StopReason::time_limit:
      return "time limit";
    case StopReason::usr1:
      return "SIGUSR1";
    case StopReason::interrupt:
      return "SIGINT";
    case StopReason::term:
      return "SIGTERM";
  }
  return "";
}

void watch_stop_signals() {
  // Where the launcher's daemon has died, what is written for it is lost; the process lives and says in the run
  // directory what happened.
  std::signal(SIGPIPE, SIG_IGN);
  handle(SIGUSR1, remember);
  handle(SIGTERM, remember);
}

void heed_interrupts(int rank, const std::string& then) {
  static std::string text;
  text_then = nullptr;
  if (rank == 0) {
    text = fmt::format(": {}", then);
    text_before = log::shows_progress() ? "\r\033[K" : "";
    text_then = text.c_str();
  }
  struct sigaction current = {};
  sigaction(SIGINT, nullptr, &current);
  if (current.sa_handler == SIG_DFL) handle(SIGINT, remember);
}

void set_stop_time(double seconds) { stop_time = seconds; }

StopReason stop_reason() {
  if (const int signal = received; signal != 0) {
    return signal == SIGTERM ? StopReason::term : signal == SIGINT ? StopReason::interrupt : StopReason::usr1;
  }
  const double limit = stop_time;
  return limit > 0 && wall_seconds() >= limit ? StopReason::time_limit : StopReason::none;
}

int stop_signal() { return received; }

void leave_if_stopped(const char* what) {
  if (const StopReason reason = stop_reason(); reason != StopReason::none)
    fail(Exit::stopped, "stopped on request ({}) while {}; submit it again", name_of(reason), what);
}

}  // namespace convoy
