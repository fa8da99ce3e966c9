// SPDX-License-Identifier: Apache-2.0
// Streams, events, copies and captured graphs, against a runtime whose streams are lazy.
#include "backend/cuda/runtime/queue.hpp"

#include "backend/cuda/kernels/flat.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "backend/cuda/runtime/pinned_ring.hpp"
#include "core/errors.hpp"
#include "cuda/runtime/fixture.hpp"
#include "support/expect_error.hpp"

namespace convoy::cuda {
namespace {

float* floats(Queue& queue, Index count) {
  return reinterpret_cast<float*>(queue.allocate(count * static_cast<Index>(sizeof(float)), "a test"));
}
float* host_floats(Queue& queue, Index count) {
  return reinterpret_cast<float*>(queue.allocate_host(count * static_cast<Index>(sizeof(float)), "a test"));
}

TEST(CudaQueue, MemoryIsZeroedAndAligned) {
  in_all_orders([] {
    Queue queue;
    float* const device = floats(queue, 1000);
    float* const host = host_floats(queue, 1000);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(device) % 256, 0U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(host) % 64, 0U);
    EXPECT_EQ(host[999], 0);
    EXPECT_TRUE(queue.is_pinned(host + 10, 990 * 4));
    EXPECT_FALSE(queue.is_pinned(host + 10, 991 * 4));
    host[999] = 1;
    queue.to_host(host, device, 4000, Stream::compute);
    queue.wait(queue.record());
    EXPECT_EQ(host[999], 0);
  });
}

TEST(CudaQueue, EventsAreAskedWithoutWaitingAndOutliveTheirRing) {
  host_cuda::settings() = {};
  Queue queue;
  float* const at = floats(queue, 4);
  check(fill_floats(at, 4, 1, queue.stream()), "fill");
  const Event first = queue.record();
  EXPECT_FALSE(queue.done(first));  // the stand-in says so once
  EXPECT_TRUE(queue.done(first));
  EXPECT_TRUE(queue.done({}));
  std::vector<Event> events;
  events.reserve(2000);
  for (int i = 0; i < 2000; ++i) events.push_back(queue.record());
  for (const Event event : events) queue.wait(event);
  EXPECT_TRUE(queue.done(first));
  const long syncs = host_cuda::counts().waits;
  queue.follow(Stream::communication, first);
  EXPECT_EQ(host_cuda::counts().waits, syncs) << "an event that has passed needs no wait";
}

/// What the order of a stream says already takes no wait: of its own events, of those before one that it waited for,
/// and of those before one that the host knows to have passed.
TEST(CudaQueue, WaitsThatTheOrderOfStreamsSparesAreNotThere) {
  host_cuda::settings() = {};
  Queue queue;
  const auto waits = [&queue](Stream by, Event event) {
    const long before = host_cuda::counts().waits;
    queue.follow(by, event);
    return host_cuda::counts().waits - before;
  };
  const Event first = queue.record(), second = queue.record(), third = queue.record();
  EXPECT_EQ(waits(Stream::compute, first), 0) << "its own";
  EXPECT_EQ(waits(Stream::communication, second), 1);
  EXPECT_EQ(waits(Stream::communication, first), 0);
  EXPECT_EQ(waits(Stream::communication, second), 0);
  EXPECT_EQ(waits(Stream::communication, third), 1);
  EXPECT_EQ(waits(Stream::upload, first), 1) << "that another stream waited says nothing";
  const Event fourth = queue.record(), fifth = queue.record(), elsewhere = queue.record(Stream::communication);
  queue.wait(fifth);
  EXPECT_EQ(waits(Stream::upload, fourth), 0);
  EXPECT_EQ(waits(Stream::upload, elsewhere), 1) << "that another stream's event has passed says nothing";
}

TEST(CudaQueue, StreamsFollowEachOther) {
  in_all_orders([] {
    Queue queue;
    float *const a = floats(queue, 1000), *const b = floats(queue, 1000), *const host = host_floats(queue, 1000);
    for (int round = 1; round < 4; ++round) {
      check(fill_floats(a, 1000, static_cast<float>(round), queue.stream()), "fill");
      queue.follow(Stream::communication, queue.record());
      check(copy_floats(b, a, 1000, 2, queue.stream(Stream::communication)), "copy");
      queue.follow(Stream::compute, queue.record(Stream::communication));
      check(add_floats(a, b, 1000, queue.stream()), "add");
    }
    queue.to_host(host, a, 4000, Stream::compute);
    queue.wait(queue.record());
    EXPECT_EQ(host[999], 9);
  });
}

TEST(CudaQueue, UploadsFromAnyMemoryInPieces) {
  in_all_orders([] {
    Queue queue;
    const Index count = (9 << 20) / 4 + 3;
    std::vector<float> from(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
    float *const device = floats(queue, count), *const host = host_floats(queue, count);
    queue.upload_now(device, from.data(), count * 4);
    queue.to_host(host, device, count * 4, Stream::compute);
    queue.wait(queue.record());
    EXPECT_TRUE(std::equal(from.begin(), from.end(), host));
  });
}

/// Five sends without anything that waits: the ring has four slots.
TEST(PinnedNumbers, ArriveInOrderThoughTheHostIsAhead) {
  in_all_orders([] {
    Queue queue;
    float *const numbers = floats(queue, 1), *const sums = floats(queue, 1), *const host = host_floats(queue, 1);
    PinnedRing ring(queue, numbers, 4, "a test");
    for (int i = 1; i <= 9; ++i) {
      *reinterpret_cast<float*>(ring.begin()) = static_cast<float>(i);
      ring.post();
      queue.deliver();
      check(copy_floats(sums, sums, 1, 10, queue.stream()), "copy");
      check(add_floats(sums, numbers, 1, queue.stream()), "add");
    }
    queue.to_host(host, sums, 4, Stream::compute);
    queue.wait(queue.record());
    EXPECT_EQ(*host, 123456789.0F);
  });
}

/// The step's numbers wait for those of the batch; a replay, or newer numbers for the same place, does not leave them
/// behind.
TEST(PinnedNumbers, ShareALaunchAndNoneIsLost) {
  in_all_orders([] {
    Queue queue;
    float *const numbers = floats(queue, 128), *const sums = floats(queue, 1), *const host = host_floats(queue, 1);
    PinnedRing first(queue, numbers, 4, "a test"), second(queue, numbers + 4 * 16, 8, "a test");
    const auto post = [](PinnedRing& ring, float value) {
      *reinterpret_cast<float*>(ring.begin()) = value;
      ring.post();
    };
    const host_cuda::Counts before = host_cuda::counts();
    post(first, 1);
    post(second, 2);
    queue.deliver();
    queue.deliver();
    check(add_floats(sums, numbers, 1, queue.stream()), "add");
    check(add_floats(sums, numbers + 4 * 16, 1, queue.stream()), "add");
    post(first, 10);
    post(first, 100);
    for (int i = 0; i < 3; ++i) queue.replay(1, [&] { check(add_floats(sums, numbers, 1, queue.stream()), "add"); });
    post(first, 1000);
    queue.replay(1, [] {});
    queue.to_host(host, sums, 4, Stream::compute);
    queue.wait(queue.record());
    EXPECT_EQ(*host, 1303.0F);
    EXPECT_EQ(host_cuda::counts().copies - before.copies, 1) << "the one back to the host";
  });
}

TEST(PinnedNumbers, CantBePostedWhileAGraphIsCaptured) {
  Queue queue;
  float* const numbers = floats(queue, 4);
  PinnedRing ring(queue, numbers, 4, "a test");
  queue.replay(1, [] {});
  expect_error(Exit::internal, {"while the step is captured"}, [&] {
    queue.replay(1, [&] {
      ring.begin();
      ring.post();
    });
  });
}

class Replay : public testing::Test {
 protected:
  Queue queue_;
  float* const at_ = floats(queue_, 4);
  float* const host_ = host_floats(queue_, 4);
  int bodies_ = 0, inner_ = 0;

  void add_one() {
    check(fill_floats(at_ + 1, 1, 1, queue_.stream()), "fill");
    check(add_floats(at_, at_ + 1, 1, queue_.stream()), "add");
  }
  float value() {
    queue_.to_host(host_, at_, 4, Stream::compute);
    queue_.wait(queue_.record());
    return *host_;
  }
};

TEST_F(Replay, RunsThenCapturesThenLaunchesTheGraph) {
  const long before = host_cuda::counts().graph_launches;
  for (int i = 1; i <= 5; ++i) {
    queue_.replay(7, [&] {
      ++bodies_;
      add_one();
    });
    EXPECT_EQ(bodies_, std::min(i, 2));
    EXPECT_EQ(value(), static_cast<float>(i));
  }
  EXPECT_EQ(queue_.graph_launches(), 4);
  EXPECT_EQ(host_cuda::counts().graph_launches - before, queue_.graph_launches());
  queue_.replay(8, [&] { ++bodies_; });
  EXPECT_EQ(bodies_, 3) << "another key is another graph";
}

TEST_F(Replay, WhatIsInsideBecomesPartOfTheOuterGraph) {
  for (int i = 1; i <= 4; ++i) {
    queue_.replay(1, [&] {
      ++bodies_;
      for (std::uint64_t stage = 0; stage < 3; ++stage) {
        queue_.replay(2 + stage, [&] {
          ++inner_;
          add_one();
        });
        queue_.follow(Stream::communication, queue_.record());
        check(fill_floats(at_ + 2, 1, static_cast<float>(stage), queue_.stream(Stream::communication)), "fill");
        queue_.follow(Stream::compute, queue_.record(Stream::communication));
      }
    });
    EXPECT_EQ(value(), static_cast<float>(3 * i));
  }
  EXPECT_EQ(bodies_, 2);
  EXPECT_EQ(inner_, 6);
  EXPECT_EQ(queue_.graph_launches(), 3) << "one a step, none for what is inside";
}

/// A graph knows nothing of what was waited for before or in another graph.
TEST_F(Replay, EachGraphHasItsOwnWaits) {
  for (std::uint64_t key = 1; key <= 2; ++key) {
    const auto body = [&] {
      const long before = host_cuda::counts().waits;
      const Event first = queue_.record(), second = queue_.record();
      queue_.follow(Stream::communication, second);
      queue_.follow(Stream::communication, first);
      EXPECT_EQ(host_cuda::counts().waits, before + 1);
      check(fill_floats(at_ + 2, 1, 1, queue_.stream(Stream::communication)), "fill");
      queue_.follow(Stream::compute, queue_.record(Stream::communication));
      add_one();
    };
    for (int i = 0; i < 3; ++i) queue_.replay(key, body);
  }
  EXPECT_EQ(value(), 6);
}

TEST_F(Replay, SurvivesABodyThatThrows) {
  const auto broken = [&] {
    add_one();
    fail(Exit::internal, "broken");
  };
  EXPECT_THROW(queue_.replay(1, broken), Error);
  EXPECT_THROW(queue_.replay(1, broken), Error);
  EXPECT_FALSE(queue_.capturing());
  EXPECT_EQ(value(), 1) << "what was captured did not run";
  queue_.replay(1, [&] { add_one(); });
  EXPECT_EQ(value(), 2);
}

TEST_F(Replay, TheHostCantAskForAnEventOfAGraph) {
  Event inside;
  const auto body = [&] {
    inside = queue_.record();
    add_one();
  };
  queue_.replay(1, body);
  queue_.replay(1, body);
  expect_error(Exit::internal, {"event of a captured graph"}, [&] { queue_.done(inside); });
}

TEST_F(Replay, AStreamThatIsNotJoinedIsReported) {
  const auto body = [&] {
    queue_.follow(Stream::communication, queue_.record());
    check(fill_floats(at_ + 2, 1, 1, queue_.stream(Stream::communication)), "fill");
  };
  queue_.replay(1, body);
  expect_error(Exit::device, {"capturing a step failed", "please report"}, [&] { queue_.replay(1, body); });
  host_cuda::abandon_captures();
  EXPECT_EQ(value(), 0);
}

/// Two waits of one stream for another: the second stands for the first, and nothing stands for the second.
TEST(ForgottenWaits, AreNeedlessWhereALaterOneStandsForThem) {
  long before = 0;
  const auto needless_without = [&](long wait, host_cuda::Order order) {
    host_cuda::start_without(wait, order);
    Queue queue;
    float *const a = floats(queue, 4), *const b = floats(queue, 4), *const host = host_floats(queue, 4);
    const cudaStream_t other = queue.stream(Stream::communication);
    queue.follow(Stream::communication, queue.record());  // they were cleared
    before = host_cuda::counts().waits;
    check(fill_floats(a, 4, 1, other), "fill");
    queue.follow(Stream::compute, queue.record(Stream::communication));
    check(fill_floats(b, 4, 2, other), "fill");
    queue.follow(Stream::compute, queue.record(Stream::communication));
    check(add_floats(a, b, 4, queue.stream()), "add");
    queue.to_host(host, a, 16, Stream::compute);
    EXPECT_EQ(host_cuda::counts().waits, before + 2);
    queue.wait(queue.record());
    return host_cuda::forgot_needless_wait();
  };
  using host_cuda::Order;
  for (const Order order : {Order::forward, Order::reverse, Order::shuffled}) {
    SCOPED_TRACE(static_cast<int>(order));
    EXPECT_FALSE(needless_without(-1, order)) << "nothing was forgotten";
    const long first = before;
    EXPECT_TRUE(needless_without(first, order));
    EXPECT_FALSE(needless_without(first + 1, order));
    EXPECT_FALSE(needless_without(first + 2, order)) << "there is no such wait";
  }
  host_cuda::settings() = {};
}

TEST(CudaErrors, SayWhatWhyAndWhatToDo) {
  expect_error(Exit::device, {"CUDA: launch of the loss failed", "illegal", "report"},
               [] { check(cudaErrorIllegalAddress, "launch of the loss"); });
  EXPECT_NO_THROW(check(cudaSuccess, "anything"));
}

TEST(CudaErrors, OutOfMemorySaysHowMuchAndWhatToLower) {
  host_cuda::settings() = {};
  Queue queue;
  host_cuda::settings().fail_call = host_cuda::counts().calls;
  expect_error(Exit::device, {"a block of the network needs 12 MiB", "are left", "--batch-size"},
               [&] { queue.allocate(12 << 20, "a block of the network"); });
  host_cuda::settings().fail_call = host_cuda::counts().calls;
  expect_error(Exit::device, {"pinned memory is out: a ring needs 3 MiB", "ulimit"},
               [&] { queue.allocate_host(3 << 20, "a ring"); });
  host_cuda::settings() = {};
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "reported once";
}

TEST(CudaErrors, OnTheWayOutNothingWaitsForTheDevice) {
  host_cuda::settings() = {};
  const long before = host_cuda::counts().syncs;
  EXPECT_THROW(
      {
        Queue queue;
        fail(Exit::communication, "a peer is gone");
      },
      Error);
  EXPECT_EQ(host_cuda::counts().syncs, before);
  { Queue queue; }
  EXPECT_EQ(host_cuda::counts().syncs, before + 1);
}

/// Whatever call fails, an error comes out and nothing hangs or leaks into the next queue.
TEST(CudaErrors, EveryCallMayFail) {
  host_cuda::settings() = {};
  const auto work = [] {
    Queue queue;
    float *const at = floats(queue, 4), *const host = host_floats(queue, 4);
    for (int i = 0; i < 3; ++i) queue.replay(1, [&] { check(fill_floats(at, 4, 2, queue.stream()), "fill"); });
    queue.follow(Stream::communication, queue.record());
    queue.to_host(host, at, 16, Stream::communication);
    queue.wait(queue.record(Stream::communication));
    return *host;
  };
  const long before = host_cuda::counts().calls;
  EXPECT_EQ(work(), 2);
  const long calls = host_cuda::counts().calls - before;
  EXPECT_GT(calls, 500);
  for (long i = 0; i<calls; i = i> 20 && i < calls - 40 ? calls - 40 : i + 1) {  // between: 512 events alike
    host_cuda::settings().fail_call = host_cuda::counts().calls + i;
    host_cuda::settings().error = cudaErrorLaunchFailure;
    EXPECT_THROW(work(), Error) << "call " << i;
    host_cuda::abandon_all();
    host_cuda::settings() = {};
    cudaGetLastError();
  }
  EXPECT_EQ(work(), 2);
}

}  // namespace
}  // namespace convoy::cuda
