// SPDX-License-Identifier: Apache-2.0
#include "run/watchdog.hpp"

#include <gmock/gmock.h>

#include "core/progress.hpp"
#include "support/manual_clock.hpp"

namespace convoy {
namespace {

using Action = WatchdogAction;

/// A main thread that is looked at every tick.
class StallJudgeTest : public testing::Test {
 protected:
  StallJudge judge(const WatchdogLimits& limits) const { return {limits, clock.now(), cpu_seconds, progress.read()}; }

  /// Looks every tick for so long. `busy`: the share of the time in which the main thread uses its core. Returns the
  /// first action; seconds_passed says when.
  Action look_for(StallJudge& judge, double seconds, double busy = 0) {
    const double begin = clock.seconds();
    while (clock.seconds() - begin < seconds) {
      clock.advance(judge.tick());
      cpu_seconds += busy * judge.tick();
      const Action action = judge.look(clock.now(), cpu_seconds, progress.read());
      seconds_passed = clock.seconds() - begin;
      if (action != Action::none) return action;
    }
    return Action::none;
  }

  ManualClock clock;
  Progress progress;
  double cpu_seconds = 0, seconds_passed = 0;
};

TEST_F(StallJudgeTest, EndsAMainThreadThatIsStuck) {
  StallJudge stuck = judge({.seconds = 60});
  EXPECT_EQ(look_for(stuck, 1000), Action::stuck);
  EXPECT_NEAR(seconds_passed, 60, 1.01);
  EXPECT_NEAR(stuck.quiet_seconds(), 60, 1.01);
}

TEST_F(StallJudgeTest, AMarkStartsItsTimeAnew) {
  StallJudge moving = judge({.seconds = 60, .warn_seconds = 30});
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(look_for(moving, 25), Action::none);
    progress.mark();
  }
}

TEST_F(StallJudgeTest, LetsAMainThreadLiveThatComputes) {
  StallJudge computing = judge({.seconds = 60});
  EXPECT_EQ(look_for(computing, 500, 0.5), Action::none);
  EXPECT_EQ(look_for(computing, 1000, 0.01), Action::stuck) << "that is hardly work";
}

TEST_F(StallJudgeTest, EndsAMainThreadThatSpinsTooLong) {
  StallJudge spinning = judge({.seconds = 60});
  EXPECT_EQ(look_for(spinning, 1000, 1), Action::stuck);
  EXPECT_NEAR(seconds_passed, 600, 1.01) << "ten times as long";
  EXPECT_NEAR(spinning.quiet_seconds(), 600, 1.01);
}

TEST_F(StallJudgeTest, AtTheEndSpinningIsNoWork) {
  progress.enter(Activity::ending);
  StallJudge spinning = judge({.seconds = 60});
  EXPECT_EQ(look_for(spinning, 1000, 1), Action::stuck);
  EXPECT_NEAR(seconds_passed, 60, 1.01);
}

TEST_F(StallJudgeTest, AStoppedProcessStartsAnew) {
  StallJudge stopped = judge({.seconds = 60});
  EXPECT_EQ(look_for(stopped, 50), Action::none);
  clock.advance(3600);
  EXPECT_EQ(look_for(stopped, 50), Action::none);
  EXPECT_EQ(look_for(stopped, 20), Action::stuck);
}

TEST_F(StallJudgeTest, WarnsOnceBefore) {
  StallJudge stuck = judge({.seconds = 60, .warn_seconds = 20});
  EXPECT_EQ(look_for(stuck, 1000), Action::warn);
  EXPECT_NEAR(stuck.quiet_seconds(), 20, 1.01);
  EXPECT_EQ(look_for(stuck, 1000), Action::stuck);
}

TEST_F(StallJudgeTest, ZeroIsOff) {
  StallJudge never = judge({.seconds = 0, .warn_seconds = 20});
  EXPECT_EQ(look_for(never, 30), Action::warn);
  EXPECT_EQ(look_for(never, 10'000), Action::none);
}

TEST_F(StallJudgeTest, AProcessThatLeavesHasFifteenSeconds) {
  StallJudge leaving = judge({.seconds = 5, .warn_seconds = 1});
  progress.leave(3);
  EXPECT_EQ(look_for(leaving, 14), Action::none);
  EXPECT_EQ(look_for(leaving, 5), Action::leave);
}

TEST_F(StallJudgeTest, AProcessThatEndsWellHasItsWatchdog) {
  StallJudge ending = judge({.seconds = 60});
  progress.leave(75);
  EXPECT_EQ(look_for(ending, 1000), Action::stuck);
}

TEST(DescribeStallTest, SaysWhereTheMainThreadIsAndWhatItReads) {
  Progress progress;
  progress.at(3, 20);
  progress.enter(Activity::data);
  progress.doing("loading the samples");
  char text[900];
  const auto described = [&] {
    return std::string(text, static_cast<std::size_t>(describe_stall(text, sizeof text, "error", 61.24, progress.read(),
                                                                     'D', "look there")));
  };
  {
    const BlockingIo call("read", "/data/train-00001.h5");
    EXPECT_EQ(described(),
              "error: no progress for 61.2 s in phase data, epoch 3, step 20 (loading the samples, read of "
              "'/data/train-00001.h5' for 0.0 s; main thread in state D); look there\n");
  }
  progress.enter(Activity::compute);
  EXPECT_EQ(
      described(),
      "error: no progress for 61.2 s in phase forward/backward, epoch 3, step 20 (no operation known; main thread "
      "in state D); look there\n");
}

}  // namespace
}  // namespace convoy
