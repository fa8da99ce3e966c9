// SPDX-License-Identifier: Apache-2.0
#include "data/batch_queue.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/topology.hpp"

namespace convoy {
namespace {

struct FreeBytes {
  void operator()(std::uint8_t* p) const { std::free(p); }
};
using Bytes = std::unique_ptr<std::uint8_t[], FreeBytes>;

struct Place {
  BatchSlot slot;
  bool ready = false;
  std::exception_ptr error;
};

}  // namespace

/// A worker takes the lowest ticket left as soon as that ticket's slot is free, so batches become ready in about the
/// order in which they are asked for.
struct BatchQueue::State {
  const BatchQueueSpec spec;
  const Prepare prepare;
  std::mutex mutex;
  std::condition_variable work, done;
  std::vector<Place> places;  ///< ticket t uses place t % places.size()
  std::vector<Bytes> own;
  Index claimed = 0;    ///< tickets below are prepared or in work
  Index last = 0;       ///< tickets in all; 0 stops the workers
  Index returned = -1;  ///< the newest ticket given out
  Index released = 0;   ///< places of tickets below may be overwritten
  int busy = 0;         ///< workers inside prepare()
  bool stop = false;
  double wait_seconds = 0;
  std::vector<std::thread> threads;

  State(const BatchQueueSpec& queue_spec, Prepare function) : spec(queue_spec), prepare(std::move(function)) {}

  Place& place(Index ticket) { return places[static_cast<std::size_t>(ticket) % places.size()]; }
  bool claimable() const { return claimed < last && claimed < released + static_cast<Index>(places.size()); }

  void allocate(Place& to) {
    to.slot.specs.resize(static_cast<std::size_t>(spec.batch));
    if (spec.image_bytes == 0) return;
    if (spec.memory) to.slot.images = spec.memory(spec.image_bytes);
    if (to.slot.images != nullptr) return;
    own.emplace_back(static_cast<std::uint8_t*>(std::aligned_alloc(64, (spec.image_bytes + 63) / 64 * 64)));
    if (!own.back()) fail(Exit::device, "cannot hold {} bytes of images (out of memory)", spec.image_bytes);
    to.slot.images = own.back().get();
  }

  void run(int worker) {
    std::unique_lock lock(mutex);
    while (true) {
      work.wait(lock, [&] { return stop || claimable(); });
      if (stop) return;
      const Index ticket = claimed++;
      Place& to = place(ticket);
      to.ready = false;
      ++busy;
      lock.unlock();
      std::exception_ptr error;
      try {
        prepare(ticket, worker, to.slot);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      --busy;
      to.error = error;
      to.ready = true;
      done.notify_all();
    }
  }
};

BatchQueue::BatchQueue(const BatchQueueSpec& spec, Prepare prepare)
    : state_(std::make_unique<State>(spec, std::move(prepare))) {
  require(spec.workers >= 0 && spec.prefetch >= 1, "the loader prepares at least one batch ahead");
  // Two more than are prepared ahead: the two that were given out last stay untouched.
  state_->places.resize(static_cast<std::size_t>(spec.prefetch) + 2);
  for (Place& place : state_->places) state_->allocate(place);
  for (int worker = 0; worker < spec.workers; ++worker) {
    state_->threads.emplace_back([state = state_.get(), worker] {
      use_all_kept_cores();  // new threads inherit the binding of the main thread
      state->run(worker);
    });
  }
}

BatchQueue::~BatchQueue() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->work.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

void BatchQueue::begin(Index tickets, const std::function<void()>& change) {
  State& s = *state_;
  {
    std::unique_lock lock(s.mutex);
    s.last = s.claimed;
    s.done.wait(lock, [&] { return s.busy == 0; });
    for (Place& place : s.places) {
      place.ready = false;
      place.error = nullptr;
    }
    change();
    s.claimed = s.released = 0;
    s.returned = -1;
    s.last = tickets;
  }
  s.work.notify_all();
}

const BatchSlot& BatchQueue::next(Index ticket) {
  State& s = *state_;
  const Instant begin = s.spec.clock->now();
  std::unique_lock lock(s.mutex);
  require(ticket > s.returned && ticket < s.last, "batches are asked for in order");
  s.released = std::max<Index>(s.returned, 0);
  s.returned = ticket;
  Place& place = s.place(ticket);
  if (s.threads.empty()) {
    place.error = nullptr;
    s.prepare(ticket, 0, place.slot);
  } else {
    s.work.notify_all();
    s.done.wait(lock, [&] { return s.claimed > ticket && place.ready; });
  }
  s.wait_seconds += seconds_between(begin, s.spec.clock->now());
  if (place.error) std::rethrow_exception(place.error);
  return place.slot;
}

Index BatchQueue::newest() const {
  const std::lock_guard lock(state_->mutex);
  return state_->returned;
}

double BatchQueue::take_wait_seconds() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->wait_seconds, 0.0);
}

}  // namespace convoy
