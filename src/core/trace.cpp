// SPDX-License-Identifier: Apache-2.0
#include "core/trace.hpp"

#include <fmt/format.h>

#include <utility>

namespace convoy {

std::string trace_row::name_of(int row) {
  switch (row) {
    case main:
      return "main thread";
    case sums:
      return "all-reduces";
    case saver:
      return "checkpoint writer";
    default:
      return fmt::format("loader {}", row - loaders);
  }
}

void Trace::begin() {
  const std::lock_guard lock(mutex_);
  events_.clear();
  begin_ = real_clock().now();
  on_.store(true, std::memory_order_relaxed);
}

std::pair<Instant, std::vector<TraceEvent>> Trace::end() {
  const std::lock_guard lock(mutex_);
  on_.store(false, std::memory_order_relaxed);
  return {begin_, std::exchange(events_, {})};
}

void Trace::add(TraceEvent event) {
  const std::lock_guard lock(mutex_);
  if (is_on() && event.begin >= begin_) events_.push_back(std::move(event));
}

Trace& trace() {
  static Trace instance;
  return instance;
}

void TraceSpan::keep() const {
  const std::string name = number_ < 0 ? std::string(name_) : fmt::format("{} {}", name_, number_);
  trace().add({.name = name, .row = row_, .begin = begin_, .end = real_clock().now()});
}

}  // namespace convoy
