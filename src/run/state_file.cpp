// SPDX-License-Identifier: Apache-2.0
#include "run/state_file.hpp"

#include <utility>

#include "core/log.hpp"
#include "core/stop.hpp"

namespace convoy {
namespace {

constexpr double busy_period = 2, idle_period = 5, fence_period = 2;

}  // namespace

StateFile::StateFile(std::string folder, Fence fence, RunState state, Clock& clock)
    : folder_(std::move(folder)), fence_(std::move(fence)), clock_(clock), state_(std::move(state)) {}

void StateFile::step(Write when) {
  const auto since = [&](Instant begin) { return seconds_between(begin, clock_.now()); };
  RunState copy;
  bool due = when == Write::now;
  {
    const std::lock_guard lock(guard_);
    if (const StopReason reason = stop_reason(); reason != StopReason::none && state_.stop.empty()) {
      state_.stop = name_of(reason);
      state_.stop_time = clock_.wall_seconds();
      due = true;
    }
    due |= since(written_) >= (changed_ ? busy_period : idle_period);
    if (due) {
      changed_ = false;
      copy = state_;
    }
  }
  if (due && superseded_by_ == 0) {
    write(copy);
    written_ = clock_.now();
  }
  if (since(looked_) < fence_period || superseded_by_ != 0) return;
  superseded_by_ = fence_.newer();
  looked_ = clock_.now();
}

void StateFile::write(const RunState& copy) {
  RunState stamped = copy;
  stamped.updated = clock_.wall_seconds();
  try {
    fence_.replace(folder_ + "/state.json", to_text(stamped));
    failure_told_ = false;
  } catch (const Error& e) {
    if (e.code() == Exit::superseded) {
      superseded_by_ = fence_.newer();
      return;
    }
    if (!failure_told_) log::warn("{}: the run continues, but 'convoy status' can't see its state", e.what());
    failure_told_ = true;
  }
}

}  // namespace convoy
