// SPDX-License-Identifier: Apache-2.0
// What the seam promises of a backend, for the CUDA one: copies, counters, averages, resident sets.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "backend/cuda/counters.hpp"
#include "backend/cuda/kernels/early.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "core/errors.hpp"
#include "cuda/runtime/fixture.hpp"
#include "network/models.hpp"
#include "support/expect_error.hpp"

namespace convoy::cuda {
namespace {

std::vector<float> ramp(Index count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

Plan small_plan() {
  GraphSpec spec;
  spec.model = "resnet8";
  spec.classes = 10;
  return make_plan(build_graph(spec), {});
}

TEST(CudaBackend, CopiesBothWaysFromAnyMemory) {
  in_all_orders([] {
    const auto backend = make_backend();
    for (const Index count : {1, 1000, (5 << 20) / 4 + 7}) {
      const std::vector<float> values = ramp(count);
      float* const device = backend->allocate(count);
      float* const pinned = backend->allocate_host(count);
      EXPECT_EQ(read_back(*backend, device, count), std::vector<float>(values.size(), 0.0F));
      const Event sent = backend->upload(device, values.data(), count);
      backend->copy(device, device, count, 2);
      const std::vector<float> doubled = read_back(*backend, device, count);
      EXPECT_EQ(doubled.back(), 2 * values.back());
      EXPECT_TRUE(backend->done(sent));
      std::copy(values.begin(), values.end(), pinned);
      const Event uploaded = backend->upload(device, pinned, count);
      while (!backend->done(uploaded)) {
      }
      std::fill(pinned, pinned + count, 0.0F);
      const Event event = backend->download(pinned, device, count, backend->record());
      while (!backend->done(event)) {
      }
      EXPECT_TRUE(std::equal(values.begin(), values.end(), pinned));
    }
  });
}

/// A second download before the first was asked for, and one that nobody asks for.
TEST(CudaBackend, DownloadsFinishEachOther) {
  in_all_orders([] {
    const auto backend = make_backend();
    const Index count = (9 << 20) / 4;
    const std::vector<float> values = ramp(count);
    float* const device = backend->allocate(count);
    backend->upload(device, values.data(), count);
    std::vector<float> first(values.size()), second(values.size()), third(values.size());
    const Event a = backend->download(first.data(), device, count, backend->record());
    const Event b = backend->download(second.data(), device, count, backend->record());
    EXPECT_TRUE(backend->done(a));
    EXPECT_EQ(first, values);
    expect_error(Exit::internal, {"download"}, [&] { backend->follow(b); });
    while (!backend->done(b)) {
    }
    EXPECT_EQ(second, values);
    backend->download(third.data(), device, count, backend->record());
  });
}

TEST(CudaBackend, AveragesAndFlatKernels) {
  in_all_orders([] {
    const auto backend = make_backend();
    const Plan plan = small_plan();
    const OptimiserSpec spec;
    const SetLayout layout = backend->layout(plan, spec);
    float *const a = backend->allocate(layout.count()), *const b = backend->allocate(layout.count());
    const ParameterSet to{a, layout.count()}, from{b, layout.count()};
    expect_error(Exit::internal, {"no updater"}, [&] { backend->blend(to, from); });
    const auto updater = backend->compile(plan, spec);
    backend->fill(a, layout.count(), 4);
    backend->fill(b, layout.count(), 8);
    backend->add(b, a, 1);
    backend->set_step({.ema_decay = 0.75F});
    backend->blend(to, from);
    const std::vector<float> blended = read_back(*backend, a, layout.count());
    EXPECT_EQ(blended[0], 6);
    EXPECT_EQ(blended[1], 5);
    EXPECT_EQ(blended[static_cast<std::size_t>(layout.optimiser.begin)], 4) << "momentum is no part of the average";
    EXPECT_EQ(blended[static_cast<std::size_t>(layout.statistics.begin)], 5);
    EXPECT_EQ(blended[static_cast<std::size_t>(layout.state.begin)], 4);
    // Steps queued one behind the other have their own decay each: 0.5 twice, then none, which is the weight itself.
    for (const float decay : {0.5F, 0.5F}) {
      backend->set_step({.ema_decay = decay});
      backend->blend(to, from);
    }
    EXPECT_EQ(read_back(*backend, a, layout.count())[1], 7.25F);
    backend->set_step({.ema_decay = 0.5F});
    backend->blend(to, from);
    backend->set_step({.ema_decay = 0});
    backend->blend(to, from);
    EXPECT_EQ(read_back(*backend, a, layout.count())[1], 8);
  });
}

TEST(CudaBackend, CountersAreSumsSinceTheyWereTaken) {
  in_all_orders([] {
    Queue queue;
    CountersOnDevice counters(queue);
    auto* const more = reinterpret_cast<Counters*>(queue.allocate_host(sizeof(Counters), "a test"));
    const auto count = [&](double loss, std::int32_t bad) {
      queue.wait(queue.record());  // `more` was read
      *more = {};
      more->sums[Counter::loss] = loss;
      more->samples = 10;
      more->skipped = bad >= 0 ? 1 : 0;
      more->bad_replica = bad;
      queue.to_device(counters.device(), more, sizeof(Counters));
    };
    count(1, -1);
    EXPECT_EQ(counters.take().samples, 0) << "what no snapshot saw is dropped";
    queue.wait(counters.snapshot());
    EXPECT_EQ(counters.take().samples, 0);
    count(2, 5);
    counters.snapshot();
    count(4, 3);
    const Event last = counters.snapshot();
    count(8, 7);  // after the snapshot: it counts next time
    queue.wait(last);
    Counters taken = counters.take();
    EXPECT_EQ(taken.sums[Counter::loss], 6);
    EXPECT_EQ(taken.samples, 20);
    EXPECT_EQ(taken.skipped, 2);
    EXPECT_EQ(taken.bad_replica, 3);
    for (int i = 0; i < 9; ++i) {  // more snapshots than slots
      counters.snapshot();
      count(1, -1);
    }
    taken = counters.take();
    EXPECT_EQ(taken.sums[Counter::loss], 16);
    EXPECT_EQ(taken.bad_replica, 7);
  });
}

TEST(CudaBackend, KeepsSetsWhereThereIsRoom) {
  host_cuda::settings() = {};
  const auto backend = make_backend();
  const std::vector<std::uint8_t> images(60, 7);
  EXPECT_EQ(backend->keep_resident(images.data(), 5, 12), 0);
  EXPECT_EQ(backend->keep_resident(images.data(), 3, 20), 1);
  EXPECT_EQ(backend->keep_resident(images.data(), Index{1} << 34, 12), -1);
}

TEST(CudaBackend, SaysWhatItIs) {
  const auto backend = make_backend();
  EXPECT_EQ(backend->describe(), "cuda stand-in sm_90");
  EXPECT_FALSE(backend->host_reads());
  EXPECT_EQ(backend->identity(), "GPU-000102030405060708090a0b0c0d0e0f");
  ASSERT_NE(backend->communication(), nullptr);
  EXPECT_EQ(backend->communication()->stream(), backend->queue().stream(Stream::communication));
}

TEST(CudaBackend, TheSecondQueueMovesBesideTheFirst) {
  in_all_orders([] {
    const auto backend = make_backend();
    CommunicationQueue& second = *backend->communication();
    float *const a = backend->allocate(64), *const b = backend->allocate(64), *const host = backend->allocate_host(64);
    for (int round = 1; round < 4; ++round) {
      backend->fill(a, 64, static_cast<float>(round));
      second.follow(backend->record());
      second.copy(b, a, 64);
      second.add(b, a, 64);
      second.download(host, b, 64);
      const Event down = second.record();
      while (!backend->done(down)) {
      }
      host[63] += 10;
      second.upload(a, host, 64);
      backend->follow(second.record());
      backend->copy(a, a, 64, 3);
      EXPECT_EQ(read_back(*backend, a, 64)[63], static_cast<float>(3 * (2 * round + 10)));
      EXPECT_FALSE(second.capturing());
    }
  });
}

TEST(EarlyLaunches, AreAskedForByTheEnvironment) {
  const auto early = [](const char* wish) {
    if (wish != nullptr) setenv("CONVOY_EARLY_LAUNCH", wish, 1);
    make_backend();
    unsetenv("CONVOY_EARLY_LAUNCH");
    return launches_early;
  };
  EXPECT_FALSE(early(nullptr));
  EXPECT_FALSE(early("0"));
  EXPECT_TRUE(early("1"));
  EXPECT_FALSE(early(nullptr)) << "the next backend does not inherit it";
}

}  // namespace
}  // namespace convoy::cuda
