// SPDX-License-Identifier: Apache-2.0
#include "data/loader.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/cores.hpp"
#include "core/errors.hpp"

namespace convoy {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Memory of one prepared batch, made once for the largest.
struct Slot {
  std::vector<SampleSpec> specs;
  std::vector<std::uint8_t> images;  ///< empty where the set is resident
  Index count = 0;
  bool ready = false;
  std::exception_ptr error;
};

}  // namespace

/// Batches of an epoch are numbered by tickets in the order (step, owned replica). A worker takes the lowest ticket
/// left as soon as that ticket's slot is free, so batches become ready in about the order in which they are asked for.
struct Loader::State {
  const Dataset& dataset;
  const LoaderSpec spec;
  std::optional<EpochOrder> order;
  Index epoch = 0, from_step = 0;

  std::mutex mutex;
  std::condition_variable work, done;
  std::vector<Slot> slots;  ///< ticket t uses slot t % slots.size()
  Index claimed = 0;        ///< tickets below are prepared or in work
  Index last = 0;           ///< tickets of this epoch; 0 stops the workers
  Index returned = -1;      ///< ticket of the newest batch given out
  Index released = 0;       ///< slots of tickets below may be overwritten
  int busy = 0;             ///< workers inside prepare()
  bool stop = false;
  double wait_seconds = 0;
  std::vector<std::thread> threads;

  State(const Dataset& set, const LoaderSpec& loader_spec) : dataset(set), spec(loader_spec) {}

  Slot& slot(Index ticket) { return slots[static_cast<std::size_t>(ticket) % slots.size()]; }
  bool claimable() const { return claimed < last && claimed < released + static_cast<Index>(slots.size()); }

  Index ticket_of(Index step, int replica) const {
    return (step - from_step) * spec.replica_count + (replica - spec.first_replica);
  }
  Index step_of(Index ticket) const { return from_step + ticket / spec.replica_count; }
  int replica_of(Index ticket) const { return spec.first_replica + static_cast<int>(ticket % spec.replica_count); }

  void prepare(Index ticket, Slot& to) const;
  void work_on_batches();
  /// Ends the current epoch: no ticket is left, no worker is inside prepare().
  void drain(std::unique_lock<std::mutex>& lock);
};

void Loader::State::prepare(Index ticket, Slot& to) const {
  const Index step = step_of(ticket);
  const int replica = replica_of(ticket);
  to.count = order->count(step, replica);
  if (to.count == 0) return;
  if (spec.delay_seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(spec.delay_seconds));
  const Index bytes = dataset.info().image_bytes();
  for (Index i = 0; i < to.count; ++i) {
    const Index sample = order->sample(step, replica, i);
    if (!dataset.range().contains(sample)) {
      fail(Exit::internal, "internal error: sample {} of replica {} is not among the loaded samples {} to {}", sample,
           replica, dataset.range().begin, dataset.range().end() - 1);
    }
    SampleSpec& s = to.specs[static_cast<std::size_t>(i)];
    augment(spec.augment, epoch, order->position(step, replica, i), dataset.id(sample), s);
    s.a = s.b = dataset.label(sample);
    s.position = order->position(step, replica, i);
    const Index stored = sample - dataset.range().begin;
    s.sample = spec.resident >= 0 ? stored : i;
    if (spec.resident < 0) {
      std::memcpy(to.images.data() + i * bytes, dataset.images() + stored * bytes, static_cast<std::size_t>(bytes));
    }
  }
}

void Loader::State::work_on_batches() {
  std::unique_lock lock(mutex);
  while (true) {
    work.wait(lock, [&] { return stop || claimable(); });
    if (stop) return;
    const Index ticket = claimed++;
    Slot& to = slot(ticket);
    to.ready = false;
    ++busy;
    lock.unlock();
    std::exception_ptr error;
    try {
      prepare(ticket, to);
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

void Loader::State::drain(std::unique_lock<std::mutex>& lock) {
  last = claimed;
  done.wait(lock, [&] { return busy == 0; });
  for (Slot& s : slots) {
    s.ready = false;
    s.error = nullptr;
  }
}

Loader::Loader(const Dataset& dataset, const LoaderSpec& spec) : state_(std::make_unique<State>(dataset, spec)) {
  require(spec.workers >= 0 && spec.prefetch >= 1, "the loader prepares at least one batch ahead");
  require(spec.first_replica >= 0 && spec.replica_count >= 0 &&
              spec.first_replica + spec.replica_count <= spec.order.replicas,
          "the loader's replicas are among the job's");
  check_augment(spec.augment);
  if (spec.replica_count == 0) return;
  // Two more than are prepared ahead: the two that were given out last stay untouched.
  state_->slots.resize(static_cast<std::size_t>(spec.prefetch) + 2);
  for (Slot& slot : state_->slots) {
    slot.specs.resize(static_cast<std::size_t>(spec.order.batch));
    if (spec.resident < 0)
      slot.images.resize(static_cast<std::size_t>(spec.order.batch * dataset.info().image_bytes()));
  }
  for (int worker = 0; worker < spec.workers; ++worker) {
    state_->threads.emplace_back([state = state_.get()] {
      use_all_kept_cores();  // new threads inherit the binding of the main thread
      state->work_on_batches();
    });
  }
}

Loader::~Loader() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->work.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

const EpochOrder& Loader::begin_epoch(Index epoch, Index from_step) {
  State& s = *state_;
  EpochOrder next(s.spec.order, epoch, s.spec.first_replica, s.spec.replica_count);
  require(from_step >= 0 && from_step <= next.steps(), "the epoch has no such step");
  {
    std::unique_lock lock(s.mutex);
    s.drain(lock);
    s.order.emplace(std::move(next));
    s.epoch = epoch;
    s.from_step = from_step;
    s.claimed = s.released = 0;
    s.returned = -1;
    s.last = (s.order->steps() - from_step) * s.spec.replica_count;
  }
  s.work.notify_all();
  return *s.order;
}

Batch Loader::next(Index step, int replica) {
  State& s = *state_;
  const auto begin = Clock::now();
  std::unique_lock lock(s.mutex);
  require(s.order.has_value(), "next() before begin_epoch()");
  require(replica >= s.spec.first_replica && replica < s.spec.first_replica + s.spec.replica_count,
          "not this rank's replica");
  const Index ticket = s.ticket_of(step, replica);
  require(ticket > s.returned && ticket < s.last, "batches are asked for in order");
  for (Index skipped = s.returned + 1; skipped < ticket; ++skipped) {
    require(s.order->count(s.step_of(skipped), s.replica_of(skipped)) == 0, "a batch with samples was left out");
  }
  s.released = std::max<Index>(s.returned, 0);
  s.returned = ticket;
  Slot& slot = s.slot(ticket);
  if (s.threads.empty()) {
    slot.error = nullptr;
    s.prepare(ticket, slot);
  } else {
    s.work.notify_all();
    s.done.wait(lock, [&] { return s.claimed > ticket && slot.ready; });
  }
  s.wait_seconds += seconds_since(begin);
  if (slot.error) std::rethrow_exception(slot.error);
  Batch batch;
  batch.samples = {slot.specs.data(), static_cast<std::size_t>(slot.count)};
  batch.images = s.spec.resident >= 0 ? nullptr : slot.images.data();
  batch.resident = s.spec.resident;
  batch.valid_count = slot.count;
  batch.replica = replica;
  return batch;
}

double Loader::take_wait_seconds() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->wait_seconds, 0.0);
}

}  // namespace convoy
