// SPDX-License-Identifier: Apache-2.0
#include "run/state_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/manual_clock.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {

class StateFileTest : public testing::Test {
 protected:
  StateFileTest() { std::filesystem::create_directories(folder.path() + "/attempts"); }
  double written() const { return read_run_state(folder.path())->updated; }
  /// Steps every tick of the supervisor for so long.
  void step_for(double seconds) {
    for (const double end = clock.seconds() + seconds; clock.seconds() < end - 1e-9;) {
      clock.advance(0.1);
      file.step(StateFile::Write::if_due);
    }
  }

  const TempFolder folder;
  ManualClock clock;
  StateFile file{folder.path(), Fence({folder.path()}, 1), {.attempt = 1}, clock};
};

TEST_F(StateFileTest, IsWrittenByTheClock) {
  file.step(StateFile::Write::if_due);
  const double first = written();
  EXPECT_EQ(first, clock.wall_seconds()) << "at once";
  step_for(4.8);
  EXPECT_EQ(written(), first) << "nothing is new";
  step_for(0.4);
  EXPECT_NEAR(written(), first + 5, 0.11);
  const double second = written();
  file.note([](RunState& state) { state.step = 7; });
  step_for(1.8);
  EXPECT_EQ(written(), second);
  step_for(0.4);
  EXPECT_NEAR(written(), second + 2, 0.11) << "something is new";
  EXPECT_EQ(read_run_state(folder.path())->step, 7);
}

TEST_F(StateFileTest, OnlyTheMainThreadsUpdatesAreProgress) {
  clock.advance(10);
  file.note([](RunState& state) { state.step = 7; });
  file.step(StateFile::Write::now);
  EXPECT_EQ(read_run_state(folder.path())->progressed, 0);
  file.update([](RunState& state) { state.step = 8; });
  file.step(StateFile::Write::now);
  EXPECT_EQ(read_run_state(folder.path())->progressed, clock.wall_seconds());
}

TEST_F(StateFileTest, ANewerAttemptIsSeenAndNothingMoreIsWritten) {
  file.step(StateFile::Write::now);
  const double before = written();
  std::ofstream(folder.path() + "/attempts/0002.json") << "{}";
  step_for(1.8);
  EXPECT_EQ(file.superseded_by(), 0) << "it looks every 2 s";
  step_for(0.4);
  EXPECT_EQ(file.superseded_by(), 2);
  step_for(20);
  file.step(StateFile::Write::now);
  EXPECT_EQ(written(), before);
}

}  // namespace
}  // namespace convoy
