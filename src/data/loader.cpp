// SPDX-License-Identifier: Apache-2.0
#include "data/loader.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/errors.hpp"
#include "core/trace.hpp"
#include "data/image_maker.hpp"

namespace convoy {

bool can_be_resident(const Dataset& dataset, const AugmentSpec& augment) {
  return dataset.images() != nullptr && !augment.on_host();
}

/// Batches of an epoch are numbered by tickets in the order (step, owned replica).
struct Loader::State {
  const Dataset& dataset;
  const LoaderSpec spec;
  std::optional<EpochOrder> order;
  Index epoch = 0, from_step = 0;
  std::vector<SampleImages> makers;   ///< one a worker
  std::optional<BatchQueue> batches;  ///< last: its threads use all the others

  State(const Dataset& set, const LoaderSpec& loader_spec) : dataset(set), spec(loader_spec) {}

  Index ticket_of(Index step, int replica) const {
    return (step - from_step) * spec.replica_count + (replica - spec.first_replica);
  }
  Index step_of(Index ticket) const { return from_step + ticket / spec.replica_count; }
  int replica_of(Index ticket) const { return spec.first_replica + static_cast<int>(ticket % spec.replica_count); }

  void read_ahead(Index step, int replica, Index count) const;
  void prepare(Index ticket, SampleImages& images, BatchSlot& to) const;
};

/// Where a batch enters a piece of the buffered order, the one after it is asked for.
void Loader::State::read_ahead(Index step, int replica, Index count) const {
  const auto piece_of = [&](Index place) { return place / spec.order.repeats / spec.order.buffer; };
  const Index begin = step * spec.order.batch, now = piece_of(begin + count - 1);
  if (step > from_step && now == piece_of(begin - 1)) return;
  if (step == from_step) dataset.will_read(order->piece(replica, piece_of(begin) * spec.order.buffer));
  dataset.will_read(order->piece(replica, (now + 1) * spec.order.buffer));
}

void Loader::State::prepare(Index ticket, SampleImages& images, BatchSlot& to) const {
  const Index step = step_of(ticket);
  const int replica = replica_of(ticket);
  to.count = order->count(step, replica);
  if (to.count == 0) return;
  if (spec.delay_seconds > 0) spec.clock->sleep(spec.delay_seconds);
  const Index bytes = SampleImages::image_bytes(dataset, spec.augment);
  if (spec.order.shuffle == Shuffle::buffered) read_ahead(step, replica, to.count);
  for (Index i = 0; i < to.count; ++i) {
    Index sample = order->sample(step, replica, i);
    const Index position = order->position(step, replica, i);
    if (!dataset.range().contains(sample)) {
      fail(Exit::internal, "internal error: sample {} of replica {} is not among the loaded samples {} to {}", sample,
           replica, dataset.range().begin, dataset.range().end() - 1);
    }
    if (spec.resident < 0) sample = images.put(sample, epoch, position, to.images + i * bytes);
    SampleSpec& s = to.specs[static_cast<std::size_t>(i)];
    augment(spec.augment, epoch, position, dataset.id(sample), s);
    s.a = s.b = dataset.label(sample);
    s.position = position;
    s.sample = spec.resident >= 0 ? sample - dataset.range().begin : i;
  }
  if (spec.augment.mixing.any()) mix_batch(spec.augment, epoch, {to.specs.data(), static_cast<std::size_t>(to.count)});
}

Loader::Loader(const Dataset& dataset, const LoaderSpec& spec) : state_(std::make_unique<State>(dataset, spec)) {
  require(spec.first_replica >= 0 && spec.replica_count >= 0 &&
              spec.first_replica + spec.replica_count <= spec.order.replicas,
          "the loader's replicas are among the job's");
  require(spec.resident < 0 || can_be_resident(dataset, spec.augment), "samples that aren't pixels in memory");
  check_augment(spec.augment);
  if (spec.replica_count == 0) return;
  State& s = *state_;
  for (int worker = 0; worker < std::max(spec.workers, 1); ++worker) s.makers.emplace_back(dataset, spec.augment);
  const Index largest = batch_sizes(spec.order).front();  // a batch may be larger than the set
  const Index image_bytes = spec.resident >= 0 ? 0 : SampleImages::image_bytes(dataset, spec.augment);
  s.batches.emplace(BatchQueueSpec{.workers = spec.workers,
                                   .prefetch = spec.prefetch,
                                   .batch = largest,
                                   .image_bytes = static_cast<std::size_t>(largest * image_bytes),
                                   .memory = spec.memory,
                                   .clock = spec.clock},
                    [&s](Index ticket, int worker, BatchSlot& slot) {
                      const TraceSpan span("preparing a batch", trace_row::loaders + worker);
                      s.prepare(ticket, s.makers[static_cast<std::size_t>(worker)], slot);
                    });
}

Loader::~Loader() = default;

const EpochOrder& Loader::begin_epoch(Index epoch, Index from_step) {
  State& s = *state_;
  EpochOrder next(s.spec.order, epoch, s.spec.first_replica, s.spec.replica_count);
  require(from_step >= 0 && from_step <= next.steps(), "the epoch has no such step");
  const Index tickets = (next.steps() - from_step) * s.spec.replica_count;
  const auto change = [&] {
    s.order.emplace(std::move(next));
    s.epoch = epoch;
    s.from_step = from_step;
  };
  if (s.batches) {
    s.batches->begin(tickets, change);
  } else {
    change();
  }
  return *s.order;
}

Batch Loader::next(Index step, int replica) {
  State& s = *state_;
  require(s.order.has_value(), "next() before begin_epoch()");
  require(replica >= s.spec.first_replica && replica < s.spec.first_replica + s.spec.replica_count,
          "not this rank's replica");
  const Index ticket = s.ticket_of(step, replica);
  for (Index skipped = s.batches->newest() + 1; skipped < ticket; ++skipped) {
    require(s.order->count(s.step_of(skipped), s.replica_of(skipped)) == 0, "a batch with samples was left out");
  }
  const BatchSlot& slot = s.batches->next(ticket);
  Batch batch;
  batch.samples = {slot.specs.data(), static_cast<std::size_t>(slot.count)};
  batch.images = s.spec.resident >= 0 ? nullptr : slot.images;
  batch.resident = s.spec.resident;
  batch.valid_count = slot.count;
  batch.replica = replica;
  return batch;
}

double Loader::take_wait_seconds() { return state_->batches ? state_->batches->take_wait_seconds() : 0; }

Index Loader::memory_bytes(const Dataset& dataset, const LoaderSpec& spec) {
  if (spec.replica_count == 0) return 0;
  return memory_bytes(spec.order, spec.prefetch,
                      spec.resident >= 0 ? 0 : SampleImages::image_bytes(dataset, spec.augment));
}

Index Loader::memory_bytes(const OrderSpec& order, int prefetch, Index image_bytes) {
  return (prefetch + 2) * batch_sizes(order).front() * (image_bytes + static_cast<Index>(sizeof(SampleSpec)));
}

}  // namespace convoy
