// SPDX-License-Identifier: Apache-2.0
#include "run/state_file.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include "core/blocking_io.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/stop.hpp"
#include "core/wall_clock.hpp"
#include "train/interval.hpp"

namespace convoy {
namespace {

constexpr auto tick = std::chrono::milliseconds(100);
constexpr double busy_period = 2, idle_period = 5, fence_period = 2;
constexpr auto last_words = std::chrono::seconds(5);

}  // namespace

StateFile::StateFile(std::string folder, Fence fence, RunState state) {
  shared_->folder = std::move(folder);
  shared_->fence = std::move(fence);
  shared_->state = std::move(state);
  std::thread([shared = shared_] { shared->run(); }).detach();
}

StateFile::~StateFile() {
  std::unique_lock lock(shared_->guard);
  shared_->ending = true;
  shared_->wake.notify_all();
  shared_->wake.wait_for(lock, last_words, [&] { return shared_->ended; });
}

void StateFile::Shared::run() {
  const auto since = [](Instant begin) { return seconds_since(begin); };
  io_is_no_progress();
  Instant written{}, looked{};
  for (std::unique_lock lock(guard);;) {
    const bool last = ending;
    if (const StopReason reason = stop_reason(); reason != StopReason::none && state.stop.empty()) {
      state.stop = name_of(reason);
      state.stop_time = wall_seconds();
      written = {};
    }
    if (last || since(written) >= (changed ? busy_period : idle_period)) {
      changed = false;
      const RunState copy = state;
      lock.unlock();
      write(copy);
      written = real_clock().now();
      lock.lock();
    }
    if (last) {
      ended = true;
      wake.notify_all();
      return;
    }
    if (since(looked) >= fence_period && superseded_by == 0) {
      lock.unlock();
      superseded_by = fence.newer();
      looked = real_clock().now();
      lock.lock();
    }
    wake.wait_for(lock, tick, [&] { return ending; });
  }
}

void StateFile::Shared::write(const RunState& copy) {
  if (superseded_by != 0) return;
  RunState stamped = copy;
  stamped.updated = wall_seconds();
  try {
    fence.replace(folder + "/state.json", to_text(stamped));
    told = false;
  } catch (const Error& e) {
    if (e.code() == Exit::superseded) {
      superseded_by = fence.newer();
      return;
    }
    if (!told) log::warn("{}: the run goes on, but its state can't be seen from outside", e.what());
    told = true;
  }
}

}  // namespace convoy
