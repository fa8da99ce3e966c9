// SPDX-License-Identifier: Apache-2.0
#include "comm/deadline.hpp"

#include <gmock/gmock.h>

#include "core/progress.hpp"
#include "support/expect_error.hpp"
#include "support/manual_clock.hpp"

namespace convoy {
namespace {

using testing::HasSubstr;

class DeadlineTest : public testing::Test {
 protected:
  /// Looks once a tenth of a second for so long.
  void spend(Deadline& deadline, double seconds) {
    for (const double end = clock.seconds() + seconds; clock.seconds() < end - 1e-9;) {
      clock.advance(0.1);
      deadline.spend("gradient bucket 3");
    }
  }

  ManualClock clock;
  StallPolicy policy{.limits = {.warn_seconds = 10, .abort_seconds = 30}, .clock = &clock};
};

TEST_F(DeadlineTest, WarnsOnceAndThenEndsTheJob) {
  policy.explain = [] { return StallReport{"rank 1 on n1 is frozen", true}; };
  Deadline deadline(policy);
  testing::internal::CaptureStderr();
  spend(deadline, 29.8);
  const std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_THAT(printed, HasSubstr("waiting in start-up for gradient bucket 3 since 10."));
  EXPECT_THAT(printed, HasSubstr(" s (rank 1 on n1 is frozen); the job ends after 30 s"));
  EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 1) << printed;
  expect_error(Exit::communication,
               {"waited 30.", "gradient bucket 3 (rank 1 on n1 is frozen)", "--stall-abort-seconds"},
               [&] { spend(deadline, 0.3); });
}

TEST_F(DeadlineTest, ARankThatDoesNotSpeakGivesTheOtherTimeToEndTheJob) {
  policy.explain = [] { return StallReport{"rank 1 on n1 is frozen", false}; };
  Deadline deadline(policy);
  testing::internal::CaptureStderr();
  EXPECT_NO_THROW(spend(deadline, 32.8));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_THROW(spend(deadline, 0.4), Error) << "3 s later";
}

TEST_F(DeadlineTest, TimeBetweenTwoLooksCountsOneSecondAtMost) {
  policy.limits = {.warn_seconds = 0, .abort_seconds = 30};
  Deadline deadline(policy);
  for (int i = 0; i < 29; ++i) {
    clock.advance(1000);
    EXPECT_NO_THROW(deadline.spend("large sum"));
  }
  EXPECT_NEAR(deadline.waited_seconds(), 29, 1e-6);
}

TEST_F(DeadlineTest, ARestartBeginsAnew) {
  policy.limits = {.warn_seconds = 0, .abort_seconds = 30};
  Deadline deadline(policy);
  for (int i = 0; i < 5; ++i) {
    EXPECT_NO_THROW(spend(deadline, 25));
    deadline.restart();
  }
}

TEST_F(DeadlineTest, ZeroIsOff) {
  policy.limits = {.warn_seconds = 0, .abort_seconds = 0};
  Deadline deadline(policy);
  EXPECT_NO_THROW(spend(deadline, 1000));
}

TEST_F(DeadlineTest, ALongWaitStandsInTheProgressAndMarksIt) {
  Deadline deadline(policy);
  const std::uint64_t before = progress().read().marks;
  deadline.pause("gradient bucket 3");
  EXPECT_EQ(progress().read().marks, before + 1) << "the watchdog leaves waits under a deadline alone";
  EXPECT_FALSE(progress().read().waiting);
  spend(deadline, 1);
  deadline.pause("gradient bucket 3");
  EXPECT_TRUE(progress().read().waiting);
  EXPECT_STREQ(progress().read().operation.data(), "gradient bucket 3");
  deadline.restart();
  EXPECT_FALSE(progress().read().waiting);
}

}  // namespace
}  // namespace convoy
