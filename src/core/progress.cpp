// SPDX-License-Identifier: Apache-2.0
#include "core/progress.hpp"

#include <cstring>

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

}  // namespace convoy
