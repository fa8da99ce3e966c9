// SPDX-License-Identifier: Apache-2.0
// The ranks of a job, each with a main thread's progress of its own, by one clock.
#include "run/liveness_monitor.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <memory>

#include "support/manual_clock.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {

using testing::HasSubstr;

class LivenessMonitorTest : public testing::Test {
 protected:
  static constexpr int ranks = 3;
  LivenessMonitorTest() {
    for (int rank = 0; rank < ranks; ++rank) {
      monitors.push_back(std::make_unique<LivenessMonitor>(LivenessSpec{.rank = rank,
                                                                        .hosts = {"n0", "n0", "n0"},
                                                                        .node_first = 0,
                                                                        .node_rank = rank,
                                                                        .start = "20261128T120000-0000001",
                                                                        .local_folder = folder.path(),
                                                                        .limits = {}},
                                                           progress[rank], clock));
    }
  }
  /// All ranks but `frozen` step every tick for so long.
  void step_for(double seconds, int frozen = -1) {
    for (const double end = clock.seconds() + seconds; clock.seconds() < end;) {
      clock.advance(0.1);
      for (int rank = 0; rank < ranks; ++rank) {
        if (rank != frozen) monitors[static_cast<std::size_t>(rank)]->step();
      }
    }
  }
  Heartbeat heartbeat(int rank) const { return read_heartbeats(folder.path()).at(static_cast<std::size_t>(rank)); }

  const TempFolder folder;
  ManualClock clock;
  Progress progress[ranks];
  std::vector<std::unique_ptr<LivenessMonitor>> monitors;
};

TEST_F(LivenessMonitorTest, AHeartbeatIsWrittenEveryPeriodAndOnLeaving) {
  step_for(0.1);
  EXPECT_EQ(heartbeat(1).count, 1);
  EXPECT_EQ(heartbeat(1).period, 2);
  step_for(1.8);
  EXPECT_EQ(heartbeat(1).count, 1);
  step_for(0.4);
  EXPECT_EQ(heartbeat(1).count, 2);
  progress[1].leave(5);
  step_for(0.1);
  EXPECT_EQ(heartbeat(1).count, 3);
  EXPECT_EQ(heartbeat(1).exit, 5);
}

TEST_F(LivenessMonitorTest, SaysForHowLongTheMainThreadHasNotMoved) {
  progress[1].at(2, 7);
  progress[1].wait_begins("gradient bucket 0");
  step_for(9);
  EXPECT_EQ(heartbeat(1).step, 7);
  EXPECT_EQ(heartbeat(1).operation, "gradient bucket 0");
  EXPECT_NEAR(heartbeat(1).waiting, 8, 1.01);
  EXPECT_NEAR(heartbeat(1).quiet, 8, 1.01);
  progress[1].wait_ends();
  step_for(2.1);
  EXPECT_EQ(heartbeat(1).waiting, -1);
}

TEST_F(LivenessMonitorTest, NamesTheRankThatIsWaitedFor) {
  progress[0].wait_begins("gradient bucket 0");
  progress[2].wait_begins("gradient bucket 0");
  progress[1].enter(Activity::data);
  step_for(5);
  EXPECT_EQ(monitors[0]->explain().missing, "") << "it has not looked yet";
  step_for(25);
  const StallReport report = monitors[0]->explain();
  EXPECT_TRUE(report.speaker);
  EXPECT_THAT(report.missing, HasSubstr("did not arrive: rank 1 on n0: alive in data, no progress for 2"));
  EXPECT_FALSE(monitors[2]->explain().speaker) << "rank 0 speaks";
}

TEST_F(LivenessMonitorTest, NamesARankWhoseHeartbeatsStopped) {
  step_for(3);
  progress[0].wait_begins("gradient bucket 0");
  step_for(30, 1);
  EXPECT_THAT(monitors[0]->explain().missing, HasSubstr("rank 1 on n0: in start-up, its heartbeats stopped"));
}

TEST_F(LivenessMonitorTest, GoesBackToTheMemoryOfItsHostIfTheFolderCannotBeWritten) {
  step_for(1);
  for (const auto& monitor : monitors) monitor->write_to(folder.path() + "/none");
  step_for(3);
  EXPECT_TRUE(read_heartbeats(folder.path()).empty());
  step_for(6);
  EXPECT_EQ(read_heartbeats(folder.path()).size(), static_cast<std::size_t>(ranks));
}

}  // namespace
}  // namespace convoy
