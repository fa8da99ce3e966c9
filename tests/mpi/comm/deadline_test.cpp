// SPDX-License-Identifier: Apache-2.0
// One rank comes too late on purpose; it does come in the end, so that the test ends.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "comm/communicator.hpp"
#include "core/clock.hpp"
#include "support/host_device.hpp"
#include "support/mpi_main.hpp"

namespace convoy {
namespace {

constexpr auto late = std::chrono::milliseconds(900);

struct Caught {
  Exit code = Exit::ok;
  std::string message;
  double seconds = 0;
};

Caught run(const std::function<void()>& body) {
  const auto begin = real_clock().now();
  Caught caught;
  try {
    body();
  } catch (const Error& e) {
    caught = {e.code(), e.what(), 0};
  }
  caught.seconds = seconds_since(begin);
  return caught;
}

/// Kept until the program ends: MPI may still write to what an expired operation left behind.
struct Kept {
  Communicator comm{test_session(), {.warn_seconds = 0.1, .abort_seconds = 0.3}};
  Kept() {
    comm.explain_stalls([] { return StallReport{}; });
  }
  Communicator patient{test_session(), {}};
  HostDevice device;
};
Kept& keep() {
  static std::vector<std::unique_ptr<Kept>> all;
  all.push_back(std::make_unique<Kept>());
  return *all.back();
}

void expect_expired(const Caught& caught, const char* what) {
  EXPECT_EQ(caught.code, Exit::communication);
  EXPECT_NE(caught.message.find(what), std::string::npos) << caught.message;
  EXPECT_NE(caught.message.find("waited 0."), std::string::npos) << caught.message;
  EXPECT_GE(caught.seconds, 0.29);
  EXPECT_LT(caught.seconds, 0.85);
}

TEST(DeadlineTest, NamesTheOperationOfACommunicator) {
  Kept& kept = keep();
  static double value = 1;
  kept.comm.explain_stalls([] { return StallReport{"rank 0 on node-7 is missing", true}; });
  kept.patient.barrier("start");
  testing::internal::CaptureStderr();
  if (kept.comm.rank() == 0) std::this_thread::sleep_for(late);
  const Caught caught = run([&] { kept.comm.sum(std::span(&value, 1), "sum of losses"); });
  const std::string printed = testing::internal::GetCapturedStderr();
  if (kept.comm.rank() == 0) {
    EXPECT_EQ(printed, "");
  } else {
    expect_expired(caught, "sum of losses (rank 0 on node-7 is missing)");
    EXPECT_NE(printed.find("warning: waiting in start-up for sum of losses since 0."), std::string::npos) << printed;
    EXPECT_NE(printed.find(" s (rank 0 on node-7 is missing)"), std::string::npos) << printed;
  }
  kept.patient.barrier("end");
}

class ReductionDeadlineTest : public testing::TestWithParam<bool> {};

TEST_P(ReductionDeadlineTest, NamesTheReduction) {
  Kept& kept = keep();
  static std::vector<std::unique_ptr<Collectives>> all;
  all.push_back(
      make_mpi_collectives(kept.comm, kept.device, {.replicas = kept.comm.size(), .reproducible = GetParam()}));
  Collectives& sums = *all.back();
  float* data = kept.device.allocate(100);
  const Part part{kept.comm.rank(), 1, data};
  const auto sum = [&](const char* what) { return sums.submit({data, std::span(&part, 1), 100, {}, what}); };
  sums.finish(sum("gradient bucket 0"));
  kept.patient.barrier("start");
  testing::internal::CaptureStderr();
  if (kept.comm.rank() == 0) std::this_thread::sleep_for(late);
  const Ticket ticket = sum("gradient bucket 1");
  const Caught caught = run([&] { sums.finish(ticket); });
  static_cast<void>(testing::internal::GetCapturedStderr());
  if (kept.comm.rank() != 0) expect_expired(caught, "gradient bucket 1");
  kept.patient.barrier("end");
}

/// A rank that computes and only looks now and then.
TEST_P(ReductionDeadlineTest, ExpiresWhilePolling) {
  Kept& kept = keep();
  static std::vector<std::unique_ptr<Collectives>> all;
  all.push_back(
      make_mpi_collectives(kept.comm, kept.device, {.replicas = kept.comm.size(), .reproducible = GetParam()}));
  Collectives& sums = *all.back();
  float* data = kept.device.allocate(100);
  const Part part{kept.comm.rank(), 1, data};
  kept.patient.barrier("start");
  testing::internal::CaptureStderr();
  if (kept.comm.rank() == 0) std::this_thread::sleep_for(late);
  const Ticket ticket = sums.submit({data, std::span(&part, 1), 100, {}, "statistics"});
  const Caught caught = run([&] {
    if (kept.comm.rank() == 0) return sums.finish(ticket);
    for (int i = 0; i < 100; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      sums.poll();
    }
  });
  static_cast<void>(testing::internal::GetCapturedStderr());
  if (kept.comm.rank() != 0) expect_expired(caught, "statistics");
  kept.patient.barrier("end");
}

INSTANTIATE_TEST_SUITE_P(Sums, ReductionDeadlineTest, testing::Bool());

/// What passes between two looks is the host's own time: nobody is late because a checkpoint took long.
TEST(DeadlineTest, ForgivesAHostThatWasBusy) {
  Communicator comm{test_session(), {.warn_seconds = 0, .abort_seconds = 1.2}};
  HostDevice device;
  const auto sums = make_mpi_collectives(comm, device, {.replicas = comm.size()});
  float* data = device.allocate(1 << 22);
  const Part part{comm.rank(), 1, data};
  const Ticket ticket = sums->submit({data, std::span(&part, 1), 1 << 22, {}, "large sum"});
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_NO_THROW(sums->poll());
  EXPECT_NO_THROW(sums->finish(ticket));
}

TEST(DeadlineTest, WaitsWithoutLimitWhereItIsOff) {
  Communicator comm{test_session(), {.warn_seconds = 0, .abort_seconds = 0}};
  if (comm.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_NO_THROW(comm.barrier("late rank"));
}

TEST(DeadlineTest, NamesAnEventOfTheDevice) {
  Communicator comm{test_session(), {.warn_seconds = 0, .abort_seconds = 0.1}};
  HostDevice device{{.far = true, .polls = 1'000'000'000}};
  const auto sums = make_mpi_collectives(comm, device, {});
  const Caught caught = run([&] { sums->await(device.record(), "counters of step 7"); });
  EXPECT_EQ(caught.code, Exit::communication);
  EXPECT_NE(caught.message.find("counters of step 7"), std::string::npos) << caught.message;
}

}  // namespace
}  // namespace convoy
