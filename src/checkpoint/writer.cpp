// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/writer.hpp"

#include <pthread.h>

#include <algorithm>
#include <csignal>

#include "core/cores.hpp"
#include "io/hdf5.hpp"

namespace convoy {
namespace {
constexpr double longest_wait = 10;
}

Writer::Writer(Clock& clock) : clock_(clock) {
  if (hdf5_is_thread_safe()) thread_ = std::thread([this] { run(); });
}

Writer::~Writer() {
  std::unique_lock lock(guard_);
  ending_ = true;
  submitted_ -= static_cast<Index>(waiting_.size());
  waiting_.clear();
  work_.notify_all();
  if (!thread_.joinable()) return;
  // A file system that hangs must not keep the process from saying why it ends.
  const bool done = clock_.wait(done_, lock, longest_wait, [&] { return finished_ == submitted_; });
  lock.unlock();
  if (done) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

Index Writer::submit(std::function<void()> part) {
  std::unique_lock lock(guard_);
  const Index number = ++submitted_;
  if (thread_.joinable()) {
    waiting_.push_back(std::move(part));
    work_.notify_all();
    return number;
  }
  lock.unlock();
  perform(number, part);
  return number;
}

bool Writer::wait_for(Index part, double seconds) {
  std::unique_lock lock(guard_);
  return clock_.wait(done_, lock, seconds, [&] { return finished_ >= part; });
}

Writer::Failure Writer::take_failure(Index part) {
  const std::lock_guard lock(guard_);
  const auto found =
      std::find_if(failures_.begin(), failures_.end(), [&](const Failure& failure) { return failure.part == part; });
  if (found == failures_.end()) return {};
  Failure failure = std::move(*found);
  failures_.erase(found);
  return failure;
}

void Writer::run() {
  // Signals are the other threads': they would interrupt the calls that are made here.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  use_all_kept_cores();
  for (std::unique_lock lock(guard_);;) {
    work_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    const auto body = std::move(waiting_.front());
    waiting_.pop_front();
    const Index part = finished_ + 1;
    lock.unlock();
    perform(part, body);
    lock.lock();
  }
}

void Writer::perform(Index part, const std::function<void()>& body) {
  Failure failure{.part = part};
  try {
    if (body) body();
  } catch (const Error& error) {
    failure.code = error.code();
    failure.text = error.what();
  } catch (const std::exception& error) {
    failure.code = Exit::internal;
    failure.text = error.what();
  }
  {
    const std::lock_guard lock(guard_);
    if (failure.code != Exit::ok) failures_.push_back(std::move(failure));
    finished_ = part;
  }
  done_.notify_all();
}

}  // namespace convoy
