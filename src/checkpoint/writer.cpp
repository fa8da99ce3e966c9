// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/writer.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <vector>

#include "core/topology.hpp"
#include "core/trace.hpp"
#include "io/hdf5.hpp"

namespace convoy {

struct Writer::State {
  explicit State(Clock& given) : clock(given) {}
  void perform_all();
  void perform(Index part, const std::function<void()>& body);

  Clock& clock;
  std::mutex guard;
  std::condition_variable work, done;
  std::deque<std::function<void()>> waiting;
  std::vector<Failure> failures;
  bool ending = false;
  Index submitted = 0;
  std::atomic<Index> finished{0};
};

namespace {
constexpr double longest_wait = 10;
}

Writer::Writer(Clock& clock) : state_(std::make_shared<State>(clock)) {
  if (hdf5_is_thread_safe()) thread_ = std::thread([state = state_] { state->perform_all(); });
}

Writer::~Writer() {
  std::unique_lock lock(state_->guard);
  state_->ending = true;
  state_->submitted -= static_cast<Index>(state_->waiting.size());
  state_->waiting.clear();
  state_->work.notify_all();
  if (!thread_.joinable()) return;
  // A file system that hangs must not keep the process from saying why it ends.
  const bool done =
      state_->clock.wait(state_->done, lock, longest_wait, [this] { return state_->finished == state_->submitted; });
  lock.unlock();
  if (done) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

Index Writer::submit(std::function<void()> part) {
  std::unique_lock lock(state_->guard);
  const Index number = ++state_->submitted;
  if (thread_.joinable()) {
    state_->waiting.push_back(std::move(part));
    state_->work.notify_all();
    return number;
  }
  lock.unlock();
  state_->perform(number, part);
  return number;
}

Index Writer::finished() const { return state_->finished; }

bool Writer::wait_for(Index part, double seconds) {
  std::unique_lock lock(state_->guard);
  return state_->clock.wait(state_->done, lock, seconds, [&] { return state_->finished >= part; });
}

Writer::Failure Writer::take_failure(Index part) {
  const std::lock_guard lock(state_->guard);
  auto& failures = state_->failures;
  const auto found =
      std::find_if(failures.begin(), failures.end(), [&](const Failure& failure) { return failure.part == part; });
  if (found == failures.end()) return {};
  Failure failure = std::move(*found);
  failures.erase(found);
  return failure;
}

void Writer::State::perform_all() {
  // Signals are the other threads': they would interrupt the calls that are made here.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  use_all_kept_cores();
  for (std::unique_lock lock(guard);;) {
    work.wait(lock, [&] { return ending || !waiting.empty(); });
    if (ending) return;
    const auto body = std::move(waiting.front());
    waiting.pop_front();
    const Index part = finished + 1;
    lock.unlock();
    perform(part, body);
    lock.lock();
  }
}

void Writer::State::perform(Index part, const std::function<void()>& body) {
  Failure failure{.part = part};
  try {
    const TraceSpan span("writing a checkpoint", trace_row::saver);
    if (body) body();
  } catch (const Error& error) {
    failure.code = error.code();
    failure.text = error.what();
  } catch (const std::exception& error) {
    failure.code = Exit::internal;
    failure.text = error.what();
  }
  {
    const std::lock_guard lock(guard);
    if (failure.code != Exit::ok) failures.push_back(std::move(failure));
    finished = part;
  }
  done.notify_all();
}

}  // namespace convoy
