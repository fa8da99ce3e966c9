// SPDX-License-Identifier: Apache-2.0
// Sums of a device with two queues, staged through host memory on the second one; or its memory given to MPI, which
// works here since it is the host's.
#include <gtest/gtest.h>

#include "comm/communicator.hpp"
#include "support/bucket_step.hpp"
#include "support/mpi_main.hpp"

namespace convoy {
namespace {

constexpr int replicas = 5;

Communicator& ranks() {
  static Communicator instance(test_session(), {.warn_seconds = 5, .abort_seconds = 8});
  return instance;
}

struct Outcome {
  std::int64_t wrong = 0;
  int waits = 0;
};

/// Two steps without one of the waits; -1: with all of them.
Outcome steps_without(int wait, Progress progress, bool reproducible, Index chunk, MpiMemory memory = MpiMemory::host) {
  QueueDevice device(progress);
  const auto sums = make_mpi_collectives(ranks(), device,
                                         {.replicas = replicas,
                                          .reproducible = reproducible,
                                          .chunk_floats = chunk,
                                          .max_count = BucketStep::count,
                                          .memory = memory});
  BucketStep step(*sums, device, {replicas, ranks().size(), ranks().rank(), reproducible});
  device.follows = 0;
  device.forgotten_follow = wait;
  Outcome outcome;
  for (int i = 0; i < 2; ++i) outcome.wrong += step.run(i);
  outcome.waits = device.follows;
  ranks().maximum(std::span(&outcome.wrong, 1), "wrong values");
  return outcome;
}

/// Pieces smaller than a bucket too: uploads of a first one while others are under way.
TEST(StagingTest, SumsInEveryOrderOfWork) {
  for (const bool reproducible : {false, true})
    for (const Index chunk : {100, 1 << 20})
      for (const Progress progress : {Progress::lazy, Progress::ahead, Progress::eager})
        for (const MpiMemory memory : {MpiMemory::host, MpiMemory::device})
          EXPECT_EQ(steps_without(-1, progress, reproducible, chunk, memory).wrong, 0)
              << reproducible << ", chunks of " << chunk << ", order " << static_cast<int>(progress) << ", memory "
              << static_cast<int>(memory);
}

TEST(StagingTest, NeedsEachOfItsWaits) {
  if (ranks().size() == 1) GTEST_SKIP() << "one rank stages nothing";
  for (const bool reproducible : {false, true}) {
    std::int64_t forgotten = 0;
    for (int wait = 0; wait < 4; ++wait) {
      const Outcome outcome = steps_without(wait, Progress::lazy, reproducible, 1 << 20);
      // Where both sums are done at the first finish, one wait serves both, and there are fewer.
      std::int64_t happened = outcome.waits > wait ? 1 : 0;
      ranks().maximum(std::span(&happened, 1), "forgotten waits");
      forgotten += happened;
      EXPECT_EQ(outcome.wrong > 0, happened > 0) << "wait " << wait << (reproducible ? " of the tree" : "");
    }
    EXPECT_GT(forgotten, 0);
  }
}

/// A sum that waits for its parts must not hold back the copies of one that does not.
TEST(StagingTest, UploadsWhileALaterSumIsComputed) {
  if (ranks().size() == 1) GTEST_SKIP() << "one rank stages nothing";
  QueueDevice device(Progress::lazy);
  const auto sums = make_mpi_collectives(ranks(), device, {.replicas = ranks().size(), .max_count = 100});
  float *const early = device.allocate(100), *const late = device.allocate(100);
  const Part first{ranks().rank(), 1, early}, second{ranks().rank(), 1, late};
  device.fill(early, 100, 2.0F);
  const Event done = device.record();
  device.fill(late, 100, 1.0F);
  bool open = false;
  device.compute_when([&open] { return open; });
  const Ticket ticket = sums->submit({early, std::span(&first, 1), 100, done, "early sum"});
  const Ticket last = sums->submit({late, std::span(&second, 1), 100, device.record(), "late sum"});
  sums->finish(ticket);
  EXPECT_TRUE(device.done(device.communication()->record())) << "copies of the early sum hang behind the late one";
  EXPECT_EQ(early[99], static_cast<float>(2 * ranks().size()));
  open = true;
  sums->finish(last);
  sums->await(device.record(), "late sum");
  EXPECT_EQ(late[99], static_cast<float>(ranks().size()));
}

}  // namespace
}  // namespace convoy
