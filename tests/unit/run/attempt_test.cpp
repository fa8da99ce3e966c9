// SPDX-License-Identifier: Apache-2.0
#include "run/attempt.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <fstream>

#include "core/wall_clock.hpp"
#include "run/run_state.hpp"
#include "support/expect_error.hpp"
#include "support/manual_clock.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {

class RequireAloneTest : public testing::Test {
 protected:
  RequireAloneTest() { claim_attempt({folder.path()}, other); }
  void write_state(double updated) {
    RunState state{.attempt = 1};
    state.updated = updated;
    std::ofstream(folder.path() + "/state.json") << to_text(state);
  }

  const TempFolder folder;
  const AttemptRecord other{.scheduler = "slurm", .job = "17", .host = "n1", .pid = 4711, .started = 1};
  AttemptRecord own{.scheduler = "slurm", .job = "18", .host = "n0"};
  ManualClock clock;
};

TEST_F(RequireAloneTest, WaitsUntilTheOtherIsSilent) {
  write_state(5);
  require_alone(folder.path(), own, 20, clock);
  EXPECT_NEAR(clock.seconds(), 12, 1.5) << "a living attempt writes its state every 5 s";
}

TEST_F(RequireAloneTest, RefusesARunThatIsAlive) {
  write_state(5);
  expect_error(Exit::usage, {"is in use by attempt 1 (slurm job 17, host n1, pid 4711)", "--take-over"},
               [&] { require_alone(folder.path(), own, 3, clock); });
  EXPECT_NEAR(clock.seconds(), 3, 0.2);
}

TEST_F(RequireAloneTest, DoesNotWaitForAnEndThatIsRecorded) {
  write_state(5);
  std::ofstream(folder.path() + "/attempts/0001.end.json") << "{}";
  require_alone(folder.path(), own, 20, clock);
  EXPECT_EQ(clock.seconds(), 0);
}

TEST_F(RequireAloneTest, DoesNotWaitForItsOwnJobStartedAgain) {
  own.job = "17";
  own.restarts = 1;
  require_alone(folder.path(), own, 20, clock);
  EXPECT_EQ(clock.seconds(), 0);
}

TEST_F(RequireAloneTest, OfTwoThatWaitedOneBeginsAndTheOtherWaitsForThatOne) {
  std::ofstream(folder.path() + "/attempts/0001.end.json") << "{}";
  const AttemptRecord second{.host = "n2", .pid = 4712};
  EXPECT_EQ(claim_alone({folder.path()}, second, 20, clock).number, 2);
  expect_error(Exit::usage, {"is in use by attempt 2 (host n2, pid 4712)"},
               [&] { claim_alone({folder.path()}, own, 3, clock); });
  EXPECT_EQ(newest_number({folder.path()}), 2);
}

TEST_F(RequireAloneTest, ARecordThatIsBeingWrittenIsWaitedFor) {
  std::ofstream(folder.path() + "/attempts/0001.end.json") << "{}";
  std::ofstream(folder.path() + "/attempts/0002.json").close();
  require_alone(folder.path(), own, 20, clock);
  EXPECT_NEAR(clock.seconds(), 2, 0.3) << "then its writer was killed";
}

TEST(PresenceTest, AProcessIsItsNumberAndWhenItBegan) {
  const double now = real_clock().wall_seconds(), ticks = process_start(getpid()).ticks;
  EXPECT_EQ(presence_of({.pid = getpid(), .started = now, .ticks = ticks}), Presence::lives);
  EXPECT_EQ(presence_of({.pid = getpid(), .started = 1000, .ticks = ticks}), Presence::lives) << "the clock was set";
  EXPECT_EQ(presence_of({.pid = getpid(), .started = now, .ticks = ticks - 1}), Presence::gone)
      << "another had the number";
  EXPECT_EQ(presence_of({.pid = 1 << 30, .started = now, .ticks = ticks}), Presence::gone);
  EXPECT_EQ(presence_of({.started = now, .ticks = ticks}), Presence::gone);
}

TEST(PresenceTest, OlderRecordsHaveTheTimeOfTheClock) {
  EXPECT_EQ(presence_of({.pid = getpid(), .started = real_clock().wall_seconds()}), Presence::lives);
  EXPECT_EQ(presence_of({.pid = getpid(), .started = 1000}), Presence::gone) << "this process did not run in 1970";
}

}  // namespace
}  // namespace convoy
