// SPDX-License-Identifier: Apache-2.0
#include "core/progress.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "core/clock.hpp"

namespace convoy {

const char* name_of(Activity activity) {
  switch (activity) {
    case Activity::start_up:
      return "start-up";
    case Activity::data:
      return "data";
    case Activity::compute:
      return "forward/backward";
    case Activity::communication:
      return "communication";
    case Activity::evaluation:
      return "evaluation";
    case Activity::checkpoint:
      return "checkpoint";
    case Activity::ending:
      return "ending";
  }
  return "";
}

void SharedText::store(const char* text) {
  Copy copy{};
  std::strncpy(copy.data(), text, capacity - 1);
  const std::uint32_t version = version_.load(std::memory_order_relaxed);
  version_.store(version + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, copy.data() + i * sizeof word, sizeof word);
    words_.at(i).store(word, std::memory_order_relaxed);
  }
  version_.store(version + 2, std::memory_order_release);
}

SharedText::Copy SharedText::load() const {
  constexpr int attempts = 8;
  for (int i = 0; i < attempts; ++i) {
    const std::uint32_t before = version_.load(std::memory_order_acquire);
    Copy copy{};
    for (std::size_t w = 0; w < words; ++w) {
      const std::uint64_t word = words_.at(w).load(std::memory_order_relaxed);
      std::memcpy(copy.data() + w * sizeof word, &word, sizeof word);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) return copy;
  }
  return {};
}

ProgressSnapshot Progress::read() const {
  ProgressSnapshot now;
  now.activity = activity_.load(std::memory_order_relaxed);
  now.epoch = epoch_.load(std::memory_order_relaxed);
  now.step = step_.load(std::memory_order_relaxed);
  now.operation = operation_.load();
  now.waiting = waiting_.load(std::memory_order_relaxed);
  now.waits = waits_.load(std::memory_order_relaxed);
  now.marks = marks_.load(std::memory_order_relaxed);
  now.exit = exit_.load(std::memory_order_relaxed);
  return now;
}

Progress& progress() {
  static Progress instance;
  return instance;
}

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
