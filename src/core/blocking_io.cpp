// SPDX-License-Identifier: Apache-2.0
#include "core/blocking_io.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "core/clock.hpp"
#include "core/progress.hpp"

namespace convoy {
namespace {

struct Call {
  std::atomic<bool> taken{false};
  std::mutex guard;  ///< of what follows; held for the copy of a text only
  const char* verb = "";
  std::array<char, 200> path{};  ///< its end where it is longer
  Instant begin;
};

constexpr int most_calls = 32;
std::array<Call, most_calls>& calls() {
  static std::array<Call, most_calls> all;
  return all;
}

int take_slot() {
  auto& all = calls();
  for (int i = 0; i < most_calls; ++i) {
    bool expected = false;
    if (all.at(static_cast<std::size_t>(i)).taken.compare_exchange_strong(expected, true)) return i;
  }
  return -1;
}

thread_local bool calls_are_progress = true;

}  // namespace

void io_is_no_progress() { calls_are_progress = false; }

BlockingIo::BlockingIo(const char* verb, const std::string& path) : slot_(take_slot()) {
  if (calls_are_progress) progress().mark();
  if (slot_ < 0) return;
  Call& call = calls().at(static_cast<std::size_t>(slot_));
  const std::lock_guard lock(call.guard);
  call.verb = verb;
  const std::size_t room = call.path.size() - 1;
  const char* tail = path.c_str() + (path.size() > room ? path.size() - room : 0);
  std::strncpy(call.path.data(), tail, room);
  call.begin = real_clock().now();
}

BlockingIo::~BlockingIo() {
  if (calls_are_progress) progress().mark();
  if (slot_ >= 0) calls().at(static_cast<std::size_t>(slot_)).taken.store(false);
}

std::size_t describe_longest_io(char* to, std::size_t capacity) {
  const auto now = real_clock().now();
  double longest = -1;
  int written = 0;
  for (Call& call : calls()) {
    if (!call.taken.load()) continue;
    const std::unique_lock lock(call.guard, std::try_to_lock);
    if (!lock) continue;
    const double seconds = std::chrono::duration<double>(now - call.begin).count();
    if (seconds <= longest) continue;
    longest = seconds;
    written = std::snprintf(to, capacity, "%s of '%s' for %.1f s", call.verb, call.path.data(), seconds);
  }
  return written > 0 ? std::min(static_cast<std::size_t>(written), capacity - 1) : 0;
}

}  // namespace convoy
