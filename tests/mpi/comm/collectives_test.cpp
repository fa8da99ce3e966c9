// SPDX-License-Identifier: Apache-2.0
// Sums of small integers are exact in float in any order, so they are compared with ==.
#include <gtest/gtest.h>

#include <tuple>

#include "comm/communicator.hpp"
#include "core/replicas.hpp"
#include "support/host_device.hpp"
#include "support/manual_clock.hpp"
#include "support/mpi_main.hpp"

namespace convoy {
namespace {

/// One for all tests: making one takes longer than most tests.
Communicator& communicator() {
  static Communicator instance(test_session(), {.warn_seconds = 5, .abort_seconds = 8});
  return instance;
}

float value(int replica, Index i) { return static_cast<float>((replica + 1) * (i % 101 + 1)); }
float total(int replicas, Index i) {
  float sum = 0;
  for (int r = 0; r < replicas; ++r) sum += value(r, i);
  return sum;
}

using Case = std::tuple<bool, Index, HostSums>;  // far device, chunk limit, what adds
class CollectivesTest : public testing::TestWithParam<Case> {
 protected:
  static constexpr int replicas = 5;
  Communicator& comm = communicator();
  HostDevice device{{.far = std::get<0>(GetParam()), .polls = 1 + comm.rank()}};
  ReplicaRun run = deal_replicas(replicas, comm.size(), comm.rank());
  std::unique_ptr<Collectives> sums = make_mpi_collectives(comm, device,
                                                           {.replicas = replicas,
                                                            .chunk_floats = std::get<1>(GetParam()),
                                                            .max_count = 1000,
                                                            .host_sums = std::get<2>(GetParam())});

  std::vector<Part> parts(Index count) {
    std::vector<Part> all;
    for (int r = run.first; r < run.first + run.count; ++r) {
      all.push_back({r, 1, device.allocate(count)});
      for (Index i = 0; i < count; ++i) all.back().data[i] = value(r, i);
    }
    return all;
  }
};

TEST_P(CollectivesTest, SumsAllPartsOfAllRanks) {
  for (const Index count : {0, 1, 7, 333, 1000}) {
    const auto all = parts(count);
    float* out = device.allocate(count + 1);
    out[count] = -1;
    sums->finish(sums->submit({out, all, count, device.record(), "sum"}));
    for (Index i = 0; i < count; ++i) ASSERT_EQ(out[i], total(replicas, i)) << i << " of " << count;
    EXPECT_EQ(out[count], -1);
    for (const Part& part : all)
      for (Index i = 0; i < count; ++i) ASSERT_EQ(part.data[i], value(part.first, i));
  }
}

TEST_P(CollectivesTest, SumsIntoOneOfTheParts) {
  for (std::size_t place = 0; place < 5; ++place) {
    const auto all = parts(100);
    float* out = place < all.size() ? all[place].data : device.allocate(100);
    sums->finish(sums->submit({out, all, 100, device.record(), "sum in place"}));
    for (Index i = 0; i < 100; ++i) ASSERT_EQ(out[i], total(replicas, i)) << i << " in part " << place;
  }
}

/// Ranks poll at different times and events are late by different numbers of polls; results arrive in order.
TEST_P(CollectivesTest, StartsInOrderOfSubmission) {
  std::vector<float*> outs;
  std::vector<Ticket> tickets;
  const Index count = 50;
  for (int k = 0; k < 100; ++k) {
    const auto all = parts(count);
    for (const Part& part : all)
      for (Index i = 0; i < count; ++i) part.data[i] += static_cast<float>(k);
    outs.push_back(device.allocate(count));
    tickets.push_back(sums->submit({outs.back(), all, count, device.record(), "one of many"}));
    if (k % (comm.rank() + 2) == 0) sums->poll();
  }
  sums->finish(tickets.back());
  for (int k = 0; k < 100; ++k) {
    sums->finish(tickets[static_cast<std::size_t>(k)]);  // done already
    for (Index i = 0; i < count; ++i)
      ASSERT_EQ(outs[static_cast<std::size_t>(k)][i], total(replicas, i) + static_cast<float>(replicas * k)) << k;
  }
}

TEST_P(CollectivesTest, DoesNotMixWithOtherMessages) {
  const auto all = parts(500);
  float* out = device.allocate(500);
  const Ticket ticket = sums->submit({out, all, 500, device.record(), "sum"});
  double other = comm.rank();
  comm.sum(std::span(&other, 1), "another sum");
  EXPECT_EQ(other, comm.size() * (comm.size() - 1) / 2);
  if (comm.rank() == 0) sums->poll();
  std::string text = comm.rank() == 0 ? "text" : "";
  comm.broadcast(text, "text");
  EXPECT_EQ(text, "text");
  sums->finish(ticket);
  for (Index i = 0; i < 500; ++i) ASSERT_EQ(out[i], total(replicas, i));
}

TEST_P(CollectivesTest, AwaitsEvents) {
  const Event event = device.record();
  sums->await(event, "an event");
  EXPECT_TRUE(device.done(event));
  sums->await({}, "no event");
  EXPECT_EQ(sums->capturable(), comm.size() == 1);
}

INSTANTIATE_TEST_SUITE_P(Devices, CollectivesTest,
                         testing::Combine(testing::Bool(), testing::Values(1 << 20, 3),
                                          testing::Values(HostSums::library, HostSums::shared_memory)),
                         [](const auto& one) {
                           return std::string(std::get<0>(one.param) ? "far" : "near") + "_chunk_" +
                                  std::to_string(std::get<1>(one.param)) +
                                  (std::get<2>(one.param) == HostSums::library ? "_library" : "_shared_memory");
                         });

/// Two busy cores hide overlap; a delay shows it that passes while the host works.
TEST(OverlapTest, WaitsLessAfterWork) {
  ManualClock clock{0.001};  // every look takes a millisecond
  Communicator comm(test_session(), {.warn_seconds = 0, .abort_seconds = 0}, 1 << 30, clock);
  HostDevice device;
  const auto sums = make_mpi_collectives(comm, device, {.replicas = comm.size(), .delay_seconds = 100});
  float* data = device.allocate(1000);
  const Part part{comm.rank(), 1, data};
  static_cast<void>(sums->take_wait_seconds());

  sums->finish(sums->submit({data, std::span(&part, 1), 1000, {}, "nothing beside it"}));
  const double waited_alone = sums->take_wait_seconds();
  clock.set_tick(0);  // a rank that gets no core for seconds is no wait; a delay that began at finish() would never end
  const Ticket ticket = sums->submit({data, std::span(&part, 1), 1000, {}, "work beside it"});
  clock.advance(100.01);  // the work, which outlasts the delay
  sums->finish(ticket);
  const double waited_beside = sums->take_wait_seconds();
  EXPECT_EQ(sums->take_wait_seconds(), 0);
  if (comm.size() == 1) {
    EXPECT_EQ(waited_alone, 0);
    return;
  }
  EXPECT_GE(waited_alone, 99);
  EXPECT_LT(waited_beside, 50);
}

}  // namespace
}  // namespace convoy
