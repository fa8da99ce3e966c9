// SPDX-License-Identifier: Apache-2.0
#include "run/rank_liveness.hpp"

#include <gmock/gmock.h>

namespace convoy {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> hosts{"n0", "n0", "n1", "n1"};

RankLiveness waiting(int rank, double unchanged = 0.5) {
  return {true,
          {.rank = rank,
           .period = 2,
           .phase = "forward/backward",
           .epoch = 1,
           .step = 7,
           .operation = "gradient bucket 0",
           .waiting = 60},
          unchanged};
}
RankLiveness computing(int rank) {
  return {true, {.rank = rank, .period = 2, .phase = "data", .epoch = 1, .step = 7, .quiet = 61}, 0.5};
}

TEST(RankLivenessTest, NamesWhoDidNotArrive) {
  const StallReport report = find_missing({waiting(0), computing(1), waiting(2), waiting(3, 33)}, hosts, 0);
  EXPECT_TRUE(report.speaker);
  EXPECT_EQ(
      report.missing,
      "did not arrive: rank 1 on n0: alive in data, epoch 1, step 7, no progress for 61 s; rank 3 on n1: in "
      "forward/backward, epoch 1, step 7, waiting for gradient bucket 0, its heartbeats stopped 33 s ago (frozen or "
      "killed, or its host, network or file system is gone)");
}

TEST(RankLivenessTest, TheLowestThatWaitsSpeaks) {
  const std::vector<RankLiveness> frozen_zero{waiting(0, 33), waiting(1), waiting(2), waiting(3)};
  EXPECT_TRUE(find_missing(frozen_zero, hosts, 1).speaker) << "rank 0 is frozen";
  EXPECT_FALSE(find_missing(frozen_zero, hosts, 2).speaker);
  EXPECT_FALSE(find_missing(frozen_zero, hosts, 3).speaker);
  EXPECT_TRUE(find_missing({computing(0), waiting(1)}, hosts, 1).speaker) << "rank 0 is the one that is waited for";
}

TEST(RankLivenessTest, ARankThatHasJustGivenUpWaitingSpeaksForItself) {
  RankLiveness moving = computing(0);
  moving.heartbeat.quiet = 0.1;
  moving.unchanged = 0.2;
  const StallReport report = find_missing({moving, computing(1), waiting(2)}, hosts, 2);
  EXPECT_FALSE(report.speaker);
  EXPECT_THAT(report.missing, HasSubstr("did not arrive: rank 1 on n0"));
  EXPECT_THAT(report.missing, Not(HasSubstr("rank 0 on")));
  EXPECT_THAT(find_missing({moving, waiting(1), waiting(2)}, hosts, 2).missing,
              HasSubstr("did not arrive: rank 0 on n0"))
      << "nobody else is missing, so it is the one that is slow";
}

TEST(RankLivenessTest, SaysWhatIsNotKnown) {
  const StallReport nothing = find_missing({{}, {}, waiting(2)}, hosts, 2);
  EXPECT_EQ(nothing.missing, "");
  const StallReport some = find_missing({{}, waiting(1), waiting(2)}, hosts, 1);
  EXPECT_EQ(some.missing, "did not arrive: rank 0 on n0: no heartbeat is known");
  EXPECT_TRUE(some.speaker);
}

TEST(RankLivenessTest, RanksThatLeftSaidWhy) {
  RankLiveness left = computing(0);
  left.heartbeat.exit = 3;
  EXPECT_EQ(liveness_of(left), Liveness::left);
  const StallReport report = find_missing({left, waiting(1)}, hosts, 1);
  EXPECT_THAT(report.missing, HasSubstr("rank 0 on n0: left with code 3 in data"));
  EXPECT_FALSE(report.speaker) << "it has spoken and is about to end the job";
}

TEST(RankLivenessTest, AllWait) {
  const StallReport report = find_missing({waiting(0), waiting(1), waiting(2), waiting(3)}, hosts, 1);
  EXPECT_THAT(report.missing, HasSubstr("all ranks are alive and wait"));
  EXPECT_THAT(report.missing,
              HasSubstr("rank 3 on n1: in forward/backward, epoch 1, step 7, waiting for gradient bucket 0"));
  EXPECT_THAT(report.missing, Not(HasSubstr("rank 1 on"))) << "it speaks itself";
}

TEST(RankLivenessTest, ManyAreCounted) {
  std::vector<RankLiveness> seen(1000, computing(0));
  seen[0] = waiting(0);
  const std::vector<std::string> many(1000, "n");
  EXPECT_THAT(find_missing(seen, many, 0).missing, HasSubstr("; and 991 more ranks"));
}

TEST(RankLivenessTest, SilenceIsTwoMissedHeartbeats) {
  EXPECT_EQ(liveness_of(waiting(0, 5)), Liveness::alive);
  EXPECT_EQ(liveness_of(waiting(0, 6)), Liveness::silent);
  EXPECT_EQ(liveness_of({}), Liveness::unknown);
}

}  // namespace
}  // namespace convoy
