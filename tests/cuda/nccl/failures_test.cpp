// SPDX-License-Identifier: Apache-2.0
// What a job sees of NCCL's failures: which operation, which exit code, and no stream that waits for ever.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "cuda/nccl/nccl_job.hpp"

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

void expect(const Caught& caught, Exit code, const std::vector<std::string>& texts) {
  EXPECT_EQ(caught.code, code) << caught.message;
  for (const std::string& text : texts) EXPECT_NE(caught.message.find(text), std::string::npos) << caught.message;
}

class NcclFailureTest : public testing::Test {
 protected:
  void SetUp() override {
    if (ranks().size() == 1) GTEST_SKIP() << "one rank sums nothing";
  }

  Ticket sum(NcclTestJob& job, const char* what) {
    static float* const data = [&] { return lasting.allocate(100); }();
    const Part part{ranks().rank(), 1, data};
    return job.sums->submit({data, std::span(&part, 1), 100, job.device.record(), what});
  }

  static inline QueueDevice lasting{Progress::lazy};  ///< memory that outlives every job
};

TEST_F(NcclFailureTest, NamesTheOperationThatAPeerNeverJoins) {
  auto& job = *new NcclTestJob(Progress::lazy);  // MPI may still write to what an expired operation left behind
  const int before = host_nccl::communicators();
  job.policy.limits = {.warn_seconds = 0.1, .abort_seconds = 0.3};
  job.policy.explain = [] { return StallReport{"rank 0 on node-7 is missing", true}; };
  job.start({.replicas = ranks().size(), .max_count = 100});
  job.sums->finish(sum(job, "gradient bucket 0"));
  job.sums->await(job.device.record(), "counters of step 1");
  ranks().barrier("start");
  testing::internal::CaptureStderr();
  if (ranks().rank() != 0) {
    job.sums->finish(sum(job, "gradient bucket 1"));
    const Event counters = job.device.record();
    expect(run([&] { job.sums->await(counters, "counters of step 2"); }), Exit::communication,
           {"waited 0.", "for counters of step 2", "rank 0 on node-7 is missing",
            "NCCL has not finished gradient bucket 1"});
    // Aborted: what was queued ends, so that memory can be freed.
    EXPECT_TRUE(job.device.done(counters));
    EXPECT_EQ(host_nccl::communicators(), before);
  }
  const std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_EQ(printed.find("for counters of step 2 since 0.") != std::string::npos, ranks().rank() != 0) << printed;
  ranks().barrier("end");
}

TEST_F(NcclFailureTest, SaysThatACapturedStepIsUnfinished) {
  auto& job = *new NcclTestJob(Progress::lazy);
  job.policy.limits = {.warn_seconds = 0, .abort_seconds = 0.2};
  job.policy.explain = [] { return StallReport{}; };
  job.start({.replicas = ranks().size(), .max_count = 100});
  ranks().barrier("start");
  if (ranks().rank() != 0) {
    job.device.capturing = true;
    job.sums->finish(sum(job, "gradient bucket 0"));
    job.device.capturing = false;
    expect(run([&] { job.sums->await(job.device.record(), "counters"); }), Exit::communication,
           {"NCCL has not finished the all-reduces of a captured step"});
    EXPECT_EQ(host_nccl::captured_operations(), 0) << "else the abort would have waited for ever";
  }
  ranks().barrier("end");
}

/// An abort within an open group would only be noted, and never happen.
TEST_F(NcclFailureTest, EndsAGroupInWhichACallFails) {
  auto& job = *new NcclTestJob(Progress::lazy);
  job.start({.replicas = ranks().size(), .reproducible = true, .max_count = 100});
  host_nccl::settings().failing_call = 2;
  expect(run([&] { static_cast<void>(sum(job, "gradient bucket 0")); }), Exit::communication, {"gradient bucket 0"});
  EXPECT_EQ(host_nccl::calls().back(), "ncclGroupEnd");
  job.sums.reset();
  ranks().barrier("end");
}

TEST_F(NcclFailureTest, EndsThoughAGraphOfItsSumsIsKept) {
  const int before = host_nccl::communicators();
  NcclTestJob job(Progress::lazy);
  job.start({.replicas = ranks().size(), .max_count = 100});
  job.device.capturing = true;
  job.sums->finish(sum(job, "gradient bucket 0"));
  job.device.capturing = false;
  job.sums->await(job.device.record(), "counters");
  EXPECT_EQ(host_nccl::captured_operations(), 1);
  job.sums.reset();
  EXPECT_EQ(host_nccl::captured_operations(), 0);
  EXPECT_EQ(host_nccl::communicators(), before);
}

TEST_F(NcclFailureTest, ReportsWhatNcclReports) {
  auto& job = *new NcclTestJob(Progress::lazy);
  job.start({.replicas = ranks().size(), .max_count = 100});
  host_nccl::settings().failing_call = 1;
  job.sums->finish(sum(job, "gradient bucket 0"));
  job.sums->await(job.device.record(), "counters");
  expect(run([&] { static_cast<void>(sum(job, "gradient bucket 1")); }), Exit::communication,
         {"ncclAllReduce failed in gradient bucket 1", "remote process exited", "socket closed by peer"});
  expect(run([&] { job.sums->poll(); }), Exit::communication, {"remote process exited"});
  expect(run([&] {
           job.device.compute([] {});
           job.sums->await(job.device.record(), "counters");
         }),
         Exit::ok, {});  // done before anybody has to wait
}

TEST_F(NcclFailureTest, ExpiresAtStartUpWhereARankIsMissing) {
  host_nccl::settings() = {.enqueue = QueueDevice::enqueue};
  auto& job = *new NcclTestJob(Progress::lazy);
  job.policy.limits = {.warn_seconds = 0, .abort_seconds = 0.2};
  job.policy.explain = [] { return StallReport{}; };
  const NcclJob named = NcclTestJob::job();
  const int before = host_nccl::communicators();
  if (ranks().rank() != 0) {
    expect(run([&] { job.sums = convoy_nccl_entry()->make(named, job.policy, job.device, {.max_count = 1}); }),
           Exit::communication, {"waited 0.", "start-up of NCCL"});
    EXPECT_EQ(host_nccl::communicators(), before);
  }
  ranks().barrier("end");
}

TEST(NcclOneRankTest, HasNoSumsToBlame) {
  if (ranks().size() > 1) GTEST_SKIP() << "of one rank";
  NcclTestJob job(Progress::lazy);
  job.policy.limits = {.warn_seconds = 0, .abort_seconds = 0.2};
  job.policy.explain = [] { return StallReport{}; };
  job.start({.replicas = 1, .max_count = 100});
  job.device.capturing = true;
  float* const data = job.device.allocate(100);
  const Part part{0, 1, data};
  job.sums->finish(job.sums->submit({data, std::span(&part, 1), 100, job.device.record(), "gradient bucket 0"}));
  job.device.capturing = false;
  job.device.compute_when([] { return false; });
  const Caught caught = run([&] { job.sums->await(job.device.record(), "counters"); });
  expect(caught, Exit::communication, {"for counters"});
  EXPECT_EQ(caught.message.find("NCCL has not finished"), std::string::npos) << caught.message;
}

TEST(NcclStartTest, RefusesAnOldLibrary) {
  host_nccl::settings() = {.enqueue = QueueDevice::enqueue, .version = NCCL_VERSION(2, 14, 3)};
  expect(run([] { convoy_nccl_entry()->make_id(); }), Exit::device, {"2.14.3 was found", "2.18.0 or newer"});
}

TEST(NcclStartTest, SaysWhyItDoesNotStart) {
  host_nccl::settings() = {.enqueue = QueueDevice::enqueue, .id = ncclSystemError};
  expect(run([] { convoy_nccl_entry()->make_id(); }), Exit::device, {"NCCL does not start", "ncclGetUniqueId"});
}

TEST(NcclStartTest, EndsItsCommunicatorWithItsPeers) {
  const int before = host_nccl::communicators();
  {
    NcclTestJob job(Progress::eager);
    job.start({.replicas = ranks().size(), .max_count = 10});
    EXPECT_EQ(host_nccl::communicators(), before + 1);
    job.sums->end();
    EXPECT_EQ(host_nccl::communicators(), before);
  }
  EXPECT_EQ(host_nccl::communicators(), before);
  ASSERT_GE(host_nccl::calls().size(), 2U);
  EXPECT_EQ(host_nccl::calls().end()[-2], "ncclCommFinalize");
  EXPECT_EQ(host_nccl::calls().back(), "ncclCommDestroy");
}

TEST(NcclStartTest, AbortsItsCommunicatorUnderAnException) {
  const int before = host_nccl::communicators();
  expect(run([] {
           NcclTestJob job(Progress::eager);
           job.start({.replicas = ranks().size(), .max_count = 10});
           fail(Exit::data, "something else");
         }),
         Exit::data, {"something else"});
  EXPECT_EQ(host_nccl::communicators(), before);
  EXPECT_EQ(host_nccl::calls().back(), "ncclCommAbort");
}

/// The ranks of a node would talk during a capture.
TEST(NcclStartTest, RegistersNoBuffersOfCapturedSums) {
  NcclTestJob job(Progress::eager);
  job.start({.replicas = ranks().size(), .max_count = 10});
  const char* const said = std::getenv("NCCL_GRAPH_REGISTER");
  ASSERT_NE(said, nullptr);
  EXPECT_STREQ(said, "0");
}

TEST(TransportTest, TakesNcclWhereEveryRankHasItsGpu) {
  EXPECT_EQ(choose_transport({.backend = "auto"}, {{"a", "b"}, {}}).transport, Transport::nccl);
  EXPECT_EQ(choose_transport({.backend = "nccl"}, {{"a", "b"}, {}}).transport, Transport::nccl);
  EXPECT_EQ(choose_transport({.backend = "mpi"}, {{"a", "b"}, {}}).transport, Transport::mpi);
  EXPECT_EQ(choose_transport({.backend = "auto"}, {{"a"}, {}}).transport, Transport::mpi);
  EXPECT_EQ(choose_transport({.backend = "nccl"}, {{"a"}, {}}).transport, Transport::nccl);
  EXPECT_EQ(choose_transport({.backend = "auto"}, {{"", ""}, {}}).transport, Transport::mpi);
  EXPECT_EQ(choose_transport({.backend = "auto"}, {{"a", ""}, {}}).transport, Transport::mpi);
  EXPECT_EQ(choose_transport({.backend = "mpi"}, {{"a", "b"}, {}}).warning, "");
}

/// Two slices of a card have UUIDs of their own, and NCCL refuses the second.
TEST(TransportTest, CountsSlicesOfOneCardAsOne) {
  const RankDevices one{.identities = {"a", "b"}, .cards = {"n1 0000:41:00", "n1 0000:41:00"}};
  const TransportChoice choice = choose_transport({.backend = "auto"}, one);
  EXPECT_EQ(choice.transport, Transport::mpi);
  expect({Exit::ok, choice.warning}, Exit::ok,
         {"ranks 0 and 1 have slices of one card, n1 0000:41:00", "take one slice of each card"});
  expect(run([&] { choose_transport({.backend = "nccl"}, one); }), Exit::device,
         {"--backend nccl is not possible", "slices of one card"});
  const RankDevices two{.identities = {"a", "b"}, .cards = {"n1 0000:41:00", "n2 0000:41:00"}};
  EXPECT_EQ(choose_transport({.backend = "auto"}, two).transport, Transport::nccl);
}

/// Debian's MPI takes no memory of a GPU.
TEST(TransportTest, AsksTheMpiLibraryFirst) {
  const TransportWish wish{.backend = "mpi", .memory = MpiMemory::device};
  EXPECT_EQ(choose_transport(wish, {{"", ""}, {}}).memory, MpiMemory::host) << "ranks without a GPU";
  if (mpi_takes_device_memory()) {
    EXPECT_EQ(choose_transport(wish, {{"a", "b"}, {}}).memory, MpiMemory::device);
  } else {
    expect(run([&] {
             choose_transport(wish, {{"a", "b"}, {}});
           }),
           Exit::device, {"--cuda-aware is not possible", "can't take a GPU's memory"});
  }
}

TEST(TransportTest, SaysWhatStandsInTheWay) {
  const TransportChoice shared = choose_transport({.backend = "auto"}, {{"GPU-1", "GPU-2", "GPU-1"}, {}});
  EXPECT_EQ(shared.transport, Transport::mpi);
  EXPECT_NE(shared.warning.find("ranks 0 and 2 share GPU-1"), std::string::npos) << shared.warning;
  EXPECT_NE(choose_transport({.backend = "mpi"}, {{"GPU-1", "GPU-1"}, {}}).warning, "");
  expect(run([] {
           choose_transport({.backend = "nccl"}, {{"GPU-1", "GPU-1"}, {}});
         }),
         Exit::device, {"ranks 0 and 1 share GPU-1, and NCCL needs one each", "--backend mpi"});
  expect(run([] { choose_transport({.backend = "nccl"}, {{"GPU-1", ""}, {}}); }), Exit::device, {"rank 1 has no GPU"});
}

TEST(TransportTest, DoesWithoutNccl) {
  const std::string problem = "rank 1: NCCL was not found: libnccl.so.2: cannot open shared object file";
  const TransportChoice choice = choose_transport({.backend = "auto"}, {{"GPU-1", "GPU-2"}, problem});
  EXPECT_EQ(choice.transport, Transport::mpi);
  EXPECT_NE(choice.warning.find(problem), std::string::npos) << choice.warning;
  EXPECT_EQ(choose_transport({.backend = "auto"}, {{"GPU-1"}, problem}).warning, "") << "one rank sums nothing";
  EXPECT_EQ(choose_transport({.backend = "mpi"}, {{"GPU-1", "GPU-2"}, problem}).warning, "") << "as asked";
  expect(run([&] {
           choose_transport({.backend = "nccl"}, {{"GPU-1", "GPU-2"}, problem});
         }),
         Exit::device, {problem, "--backend mpi", "LD_LIBRARY_PATH"});
}

}  // namespace
}  // namespace convoy
