// SPDX-License-Identifier: Apache-2.0
// Rank 0 comes after the others have given up; it does come in the end, so that the test ends.
#include <gtest/gtest.h>

#include "comm/communicator.hpp"
#include "support/host_device.hpp"
#include "support/manual_clock.hpp"
#include "support/mpi_main.hpp"

namespace convoy {
namespace {

struct Caught {
  Exit code = Exit::ok;
  std::string message;
};

Caught run(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return {e.code(), e.what()};
  }
  return {};
}

/// Kept until the program ends: MPI may still write to what an expired operation left behind.
struct Kept {
  Communicator steady{test_session(), {}};
  ManualClock clock;
  Communicator comm{test_session(), {.warn_seconds = 10, .abort_seconds = 30}, 1 << 30, clock};
  Kept() {
    comm.explain_stalls([] { return StallReport{}; });
  }
  HostDevice device;

  /// What all ranks but 0 caught, after which rank 0 joins them, perhaps in vain.
  Caught expire(const std::function<void()>& body) {
    Caught caught;
    clock.set_tick(0.1);  // 300 looks are the 30 s
    if (comm.rank() != 0) caught = run(body);
    steady.barrier("all have given up");
    if (comm.rank() == 0) run(body);
    clock.set_tick(0);
    steady.barrier("end");
    return caught;
  }
};
Kept& keep() {
  static std::vector<std::unique_ptr<Kept>> all;
  all.push_back(std::make_unique<Kept>());
  return *all.back();
}

void expect_expired(const Caught& caught, const char* what) {
  EXPECT_EQ(caught.code, Exit::communication);
  EXPECT_NE(caught.message.find(what), std::string::npos) << caught.message;
  EXPECT_NE(caught.message.find("waited 30."), std::string::npos) << caught.message;
}

TEST(DeadlineTest, NamesTheOperationOfACommunicator) {
  Kept& kept = keep();
  static double value = 1;
  kept.comm.explain_stalls([] { return StallReport{"rank 0 on node-7 is missing", true}; });
  testing::internal::CaptureStderr();
  const Caught caught = kept.expire([&] { kept.comm.sum(std::span(&value, 1), "sum of losses"); });
  const std::string printed = testing::internal::GetCapturedStderr();
  if (kept.comm.rank() != 0) {
    expect_expired(caught, "sum of losses (rank 0 on node-7 is missing)");
    EXPECT_NE(printed.find("warning: waiting in start-up for sum of losses since 10."), std::string::npos) << printed;
    EXPECT_NE(printed.find(" s (rank 0 on node-7 is missing)"), std::string::npos) << printed;
  }
}

struct Way {
  bool reproducible;
  HostSums host_sums;
};

class ReductionDeadlineTest : public testing::TestWithParam<Way> {
 protected:
  ReductionDeadlineTest() {
    static std::vector<std::unique_ptr<Collectives>> all;
    all.push_back(make_mpi_collectives(
        kept.comm, kept.device,
        {.replicas = kept.comm.size(), .reproducible = GetParam().reproducible, .host_sums = GetParam().host_sums}));
    sums = all.back().get();
  }
  Ticket sum(const char* what) { return sums->submit({data, std::span(&part, 1), 100, {}, what}); }

  Kept& kept = keep();
  Collectives* sums = nullptr;
  float* data = kept.device.allocate(100);
  const Part part{kept.comm.rank(), 1, data};
};

TEST_P(ReductionDeadlineTest, NamesTheReduction) {
  sums->finish(sum("gradient bucket 0"));
  testing::internal::CaptureStderr();
  const Caught caught = kept.expire([&] { sums->finish(sum("gradient bucket 1")); });
  static_cast<void>(testing::internal::GetCapturedStderr());
  if (kept.comm.rank() != 0) expect_expired(caught, "gradient bucket 1");
}

/// A rank that computes and only looks now and then.
TEST_P(ReductionDeadlineTest, ExpiresWhilePolling) {
  testing::internal::CaptureStderr();
  const Caught caught = kept.expire([&] {
    const Ticket ticket = sum("statistics");
    if (kept.comm.rank() == 0) return sums->finish(ticket);
    for (int i = 0; i < 1000; ++i) sums->poll();
  });
  static_cast<void>(testing::internal::GetCapturedStderr());
  if (kept.comm.rank() != 0) expect_expired(caught, "statistics");
}

INSTANTIATE_TEST_SUITE_P(Sums, ReductionDeadlineTest,
                         testing::Values(Way{false, HostSums::library}, Way{true, HostSums::library},
                                         Way{false, HostSums::shared_memory}));

/// What passes between two looks is the host's own time: no rank is late because a checkpoint took long.
TEST(DeadlineTest, ForgivesAHostThatWasBusy) {
  ManualClock clock;
  Communicator comm{test_session(), {.warn_seconds = 0, .abort_seconds = 1.2}, 1 << 30, clock};
  HostDevice device;
  const auto sums = make_mpi_collectives(comm, device, {.replicas = comm.size()});
  float* data = device.allocate(1 << 22);
  const Part part{comm.rank(), 1, data};
  const Ticket ticket = sums->submit({data, std::span(&part, 1), 1 << 22, {}, "large sum"});
  clock.advance(1000);
  EXPECT_NO_THROW(sums->poll());
  EXPECT_NO_THROW(sums->finish(ticket));
}

TEST(DeadlineTest, NamesAnEventOfTheDevice) {
  ManualClock clock;
  Communicator comm{test_session(), {.warn_seconds = 0, .abort_seconds = 30}, 1 << 30, clock};
  HostDevice device{{.far = true, .polls = 1'000'000'000}};
  const auto sums = make_mpi_collectives(comm, device, {});
  clock.set_tick(0.1);  // not before: ranks come late to the start-up on a busy machine
  const Caught caught = run([&] { sums->await(device.record(), "counters of step 7"); });
  EXPECT_EQ(caught.code, Exit::communication);
  EXPECT_NE(caught.message.find("counters of step 7"), std::string::npos) << caught.message;
}

}  // namespace
}  // namespace convoy
