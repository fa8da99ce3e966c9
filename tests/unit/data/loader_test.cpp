// SPDX-License-Identifier: Apache-2.0
#include "data/loader.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "core/errors.hpp"
#include "support/manual_clock.hpp"

namespace convoy {
namespace {

const SyntheticSpec images{.samples = 103, .height = 8, .width = 8, .classes = 4};

Dataset load(Range range) { return {images, synthetic_info(images, "train"), range}; }

LoaderSpec spec_of(int replicas, Index batch) {
  LoaderSpec spec;
  spec.order = {.samples = images.samples, .replicas = replicas, .batch = batch, .seed = 5};
  spec.augment = {.source_height = 8,
                  .source_width = 8,
                  .height = 8,
                  .width = 8,
                  .pad = 2,
                  .flip = Flip::random,
                  .cutout = 3,
                  .seed = 5};
  spec.replica_count = replicas;
  return spec;
}

/// What the order and the augmentation say of a sample, without the loader.
SampleSpec expected(const LoaderSpec& spec, const Dataset& set, const EpochOrder& order, Index epoch, Index step,
                    int replica, Index i) {
  SampleSpec s;
  const Index sample = order.sample(step, replica, i);
  augment(spec.augment, epoch, order.position(step, replica, i), set.id(sample), s);
  s.sample = sample - set.range().begin;
  s.a = s.b = set.label(sample);
  s.position = order.position(step, replica, i);
  return s;
}

void expect_equal(const SampleSpec& got, const SampleSpec& want) {
  ASSERT_EQ(got.sample, want.sample);
  ASSERT_EQ(got.position, want.position);
  ASSERT_EQ(got.y, want.y);
  ASSERT_EQ(got.x, want.x);
  ASSERT_EQ(got.flip, want.flip);
  ASSERT_EQ(got.erase_y, want.erase_y);
  ASSERT_EQ(got.erase_x, want.erase_x);
  ASSERT_EQ(got.erase_h, want.erase_h);
  ASSERT_EQ(got.erase_w, want.erase_w);
  ASSERT_EQ(got.a, want.a);
  ASSERT_EQ(got.b, want.b);
  ASSERT_EQ(got.partner, -1);
  ASSERT_EQ(got.lambda, 1);
}

/// Takes an epoch from a step on and compares every batch with the order.
void expect_epoch(Loader& loader, const LoaderSpec& spec, const Dataset& set, Index epoch, Index from_step) {
  const EpochOrder& order = loader.begin_epoch(epoch, from_step);
  const EpochOrder want(spec.order, epoch, spec.first_replica, spec.replica_count);
  ASSERT_EQ(order.steps(), want.steps());
  for (Index step = from_step; step < want.steps(); ++step) {
    for (int r = spec.first_replica; r < spec.first_replica + spec.replica_count; ++r) {
      if (want.count(step, r) == 0) continue;
      const Batch batch = loader.next(step, r);
      ASSERT_EQ(batch.replica, r);
      ASSERT_EQ(batch.valid_count, want.count(step, r));
      ASSERT_EQ(static_cast<Index>(batch.samples.size()), batch.valid_count);
      for (Index i = 0; i < batch.valid_count; ++i) {
        expect_equal(batch.samples[static_cast<std::size_t>(i)], expected(spec, set, want, epoch, step, r, i));
      }
    }
  }
}

TEST(Loader, GivesTheOrdersBatchesWhateverTheNumberOfWorkers) {
  const Dataset set = load({0, images.samples});
  for (const int workers : {0, 1, 2, 7}) {
    for (const int prefetch : {1, 3, 16}) {
      for (const Shuffle shuffle : {Shuffle::partition, Shuffle::buffered, Shuffle::global}) {
        SCOPED_TRACE(fmt::format("{} workers, {} ahead", workers, prefetch));
        LoaderSpec spec = spec_of(3, 4);
        spec.order.shuffle = shuffle;
        spec.order.buffer = 7;
        spec.workers = workers;
        spec.prefetch = prefetch;
        Loader loader(set, spec);
        for (Index epoch = 0; epoch < 3; ++epoch) ASSERT_NO_FATAL_FAILURE(expect_epoch(loader, spec, set, epoch, 0));
      }
    }
  }
}

TEST(Loader, StartsAndRestartsInTheMiddleOfAnEpoch) {
  const Dataset set = load({0, images.samples});
  LoaderSpec spec = spec_of(2, 5);
  spec.workers = 3;
  Loader loader(set, spec);
  ASSERT_NO_FATAL_FAILURE(expect_epoch(loader, spec, set, 4, 7));
  loader.begin_epoch(5, 0);
  loader.next(0, 0);  // given up with batches in preparation
  ASSERT_NO_FATAL_FAILURE(expect_epoch(loader, spec, set, 2, 1));
  ASSERT_NO_FATAL_FAILURE(expect_epoch(loader, spec, set, 2, 11));  // no step left
  loader.begin_epoch(6, 0);                                         // and destroyed while at work
}

TEST(Loader, ARankLoadsOnlyItsReplicasRange) {
  LoaderSpec spec = spec_of(4, 8);
  spec.first_replica = 1;
  spec.replica_count = 2;
  const Range range = sample_range(spec.order, 1, 2);
  ASSERT_EQ(range, (Range{26, 52}));
  const Dataset set = load(range);
  Loader loader(set, spec);
  ASSERT_NO_FATAL_FAILURE(expect_epoch(loader, spec, set, 0, 0));
}

TEST(Loader, SkipsReplicasWithoutSamples) {
  const Dataset set = load({0, images.samples});
  LoaderSpec spec = spec_of(8, 4);  // 103 = 3 * 32 + 7: the last replica has nothing in the last step
  const EpochOrder order(spec.order, 0, 0, 8);
  ASSERT_EQ(order.count(3, 7), 0);
  Loader loader(set, spec);
  for (Index epoch = 0; epoch < 2; ++epoch) ASSERT_NO_FATAL_FAILURE(expect_epoch(loader, spec, set, epoch, 0));

  spec.first_replica = 7;
  spec.replica_count = 1;
  Loader last(set, spec);
  for (Index epoch = 0; epoch < 2; ++epoch) ASSERT_NO_FATAL_FAILURE(expect_epoch(last, spec, set, epoch, 0));

  spec.replica_count = 0;
  Loader none(set, spec);
  EXPECT_EQ(none.begin_epoch(0, 0).steps(), 4);
}

TEST(Loader, GatheredRowsAreTheResidentImages) {
  const LoaderSpec resident_spec = spec_of(4, 8);
  LoaderSpec spec = resident_spec;
  spec.first_replica = 2;
  spec.replica_count = 2;
  spec.workers = 2;
  const Dataset set = load(sample_range(spec.order, 2, 2));
  LoaderSpec gathered_spec = spec;
  gathered_spec.resident = -1;
  Loader resident(set, spec), gathered(set, gathered_spec);
  const EpochOrder& order = resident.begin_epoch(1, 0);
  gathered.begin_epoch(1, 0);
  const auto bytes = static_cast<std::size_t>(set.info().image_bytes());
  for (Index step = 0; step < order.steps(); ++step) {
    for (const int r : {2, 3}) {
      if (order.count(step, r) == 0) continue;
      const Batch a = resident.next(step, r), b = gathered.next(step, r);
      ASSERT_EQ(a.images, nullptr);
      ASSERT_EQ(a.samples.size(), b.samples.size());
      for (std::size_t i = 0; i < a.samples.size(); ++i) {
        ASSERT_EQ(b.samples[i].sample, static_cast<Index>(i));
        const auto* want = set.images() + static_cast<std::size_t>(a.samples[i].sample) * bytes;
        ASSERT_EQ(std::memcmp(b.images + i * bytes, want, bytes), 0);
        SampleSpec same = b.samples[i];
        same.sample = a.samples[i].sample;
        expect_equal(same, a.samples[i]);
      }
    }
  }
}

TEST(Loader, ABatchStaysValidUntilTheNextButOneCall) {
  const Dataset set = load({0, images.samples});
  LoaderSpec spec = spec_of(1, 4);
  spec.resident = -1;
  spec.workers = 4;
  spec.prefetch = 2;
  Loader loader(set, spec);
  const EpochOrder& order = loader.begin_epoch(0, 0);
  const auto bytes = static_cast<std::size_t>(4 * set.info().image_bytes());
  for (Index step = 0; step + 2 < order.steps(); ++step) {
    loader.begin_epoch(0, step);
    const Batch batch = loader.next(step, 0);
    const std::vector<std::uint8_t> before(batch.images, batch.images + bytes);
    const std::vector<SampleSpec> specs(batch.samples.begin(), batch.samples.end());
    loader.next(step + 1, 0);
    ASSERT_EQ(std::memcmp(batch.images, before.data(), bytes), 0);
    for (std::size_t i = 0; i < specs.size(); ++i) expect_equal(batch.samples[i], specs[i]);
  }
}

// Samples of replica 0 are missing from the data set: its batch fails in a worker, replica 1 goes before and after it.
TEST(Loader, AWorkersErrorIsThrownByTheCallThatAsksForItsBatch) {
  for (const int workers : {0, 1, 3}) {
    LoaderSpec spec = spec_of(2, 8);
    spec.workers = workers;
    const Dataset set = load(sample_range(spec.order, 1, 1));
    Loader loader(set, spec);
    loader.begin_epoch(0, 0);
    for (Index step = 0; step < 3; ++step) {
      EXPECT_THROW(loader.next(step, 0), Error);
      EXPECT_EQ(loader.next(step, 1).valid_count, 8);
    }
  }
}

TEST(Loader, BatchesOutOfOrderAreRefused) {
  const Dataset set = load({0, images.samples});
  Loader loader(set, spec_of(2, 8));
  EXPECT_THROW(loader.next(0, 0), Error);
  loader.begin_epoch(0, 0);
  loader.next(0, 0);
  EXPECT_THROW(loader.next(1, 0), Error) << "replica 1 was left out";
  EXPECT_THROW(loader.next(0, 0), Error) << "twice";
  EXPECT_EQ(loader.next(0, 1).replica, 1);
}

TEST(Loader, WaitingForASlowReaderIsCounted) {
  const Dataset set = load({0, images.samples});
  ManualClock clock;
  LoaderSpec spec = spec_of(1, 16);
  spec.delay_seconds = 0.25;
  spec.workers = 0;
  spec.clock = &clock;
  Loader loader(set, spec);
  loader.begin_epoch(0, 0);
  for (Index step = 0; step < 5; ++step) loader.next(step, 0);
  EXPECT_EQ(loader.take_wait_seconds(), 5 * 0.25);
  EXPECT_EQ(loader.take_wait_seconds(), 0);
}

// While the consumer computes, batches are prepared ahead: then there is nothing left to wait for.
TEST(Loader, PreparesAhead) {
  const Dataset set = load({0, images.samples});
  ManualClock clock;
  LoaderSpec spec = spec_of(1, 18);
  spec.delay_seconds = 0.25;
  spec.workers = 1;
  spec.prefetch = 4;
  spec.clock = &clock;
  Loader loader(set, spec);
  const Index steps = loader.begin_epoch(0, 0).steps();
  ASSERT_EQ(steps, 6) << "as many as there are places for batches";
  while (clock.seconds() < 0.25 * static_cast<double>(steps)) std::this_thread::yield();
  for (Index step = 0; step < steps; ++step) loader.next(step, 0);
  EXPECT_EQ(loader.take_wait_seconds(), 0);
}

}  // namespace
}  // namespace convoy
