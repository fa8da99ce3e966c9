// SPDX-License-Identifier: Apache-2.0
#include "train/state_file.hpp"

#include <chrono>

#include "core/log.hpp"
#include "core/stop.hpp"
#include "core/wall_clock.hpp"

namespace convoy {
namespace {

constexpr auto tick = std::chrono::milliseconds(100);
constexpr double busy_period = 2, idle_period = 5, fence_period = 2;

}  // namespace

double StateFile::now() { return wall_seconds(); }

StateFile::StateFile(std::string folder, Fence fence, RunState state)
    : folder_(std::move(folder)), fence_(std::move(fence)), state_(std::move(state)), thread_([this] { run(); }) {}

StateFile::~StateFile() {
  {
    const std::lock_guard lock(guard_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void StateFile::run() {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  Clock::time_point written{}, looked{};
  for (std::unique_lock lock(guard_);;) {
    const bool last = ending_;
    if (const StopReason reason = stop_reason(); reason != StopReason::none && state_.stop.empty()) {
      state_.stop = name_of(reason);
      state_.stop_time = now();
      written = {};
    }
    if (last || since(written) >= (changed_ ? busy_period : idle_period)) {
      changed_ = false;
      const RunState copy = state_;
      lock.unlock();
      write(copy);
      written = Clock::now();
      lock.lock();
    }
    if (last) return;
    if (since(looked) >= fence_period && superseded_by_ == 0) {
      lock.unlock();
      superseded_by_ = fence_.newer();
      looked = Clock::now();
      lock.lock();
    }
    wake_.wait_for(lock, tick, [&] { return ending_; });
  }
}

void StateFile::write(const RunState& state) {
  if (superseded_by_ != 0) return;
  RunState stamped = state;
  stamped.updated = now();
  try {
    fence_.replace(folder_ + "/state.json", to_text(stamped));
    told_ = false;
  } catch (const Error& e) {
    if (e.code() == Exit::superseded) {
      superseded_by_ = fence_.newer();
      return;
    }
    if (!told_) log::warn("{}: the run goes on, but its state can't be seen from outside", e.what());
    told_ = true;
  }
}

}  // namespace convoy
