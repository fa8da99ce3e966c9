// SPDX-License-Identifier: Apache-2.0
#include "metrics/rank_times.hpp"

#include <gtest/gtest.h>

namespace convoy {
namespace {

const std::vector<std::string> hosts{"n0", "n0", "n1", "n1"};

TEST(RankTimesTest, ASlowHostStandsAboveTheMedian) {
  const std::vector<std::string> four{"a", "a", "b", "b", "c", "c", "d"};
  const RankSpread spread = spread_of({{.compute = 10},
                                       {.compute = 12},
                                       {.compute = 16},
                                       {.data = 6, .compute = 12},
                                       {.compute = 10, .comm = 99},
                                       {.compute = 10},
                                       {.compute = 9}},
                                      four);
  ASSERT_EQ(spread.hosts.size(), 4U);
  const SlowHosts slow = find_slow_hosts(spread, 1.5);
  EXPECT_DOUBLE_EQ(slow.median, 10) << "the lower one of two";
  ASSERT_EQ(slow.hosts.size(), 1U);
  EXPECT_EQ(slow.hosts.front().host, "b");
  EXPECT_EQ(slow.hosts.front().first_rank, 2);
  EXPECT_DOUBLE_EQ(slow.hosts.front().busy, 17);
  EXPECT_TRUE(find_slow_hosts(spread, 1.8).hosts.empty());
  const RankSpread two = spread_of({{.compute = 1}, {.compute = 90}}, {"a", "b"});
  EXPECT_TRUE(find_slow_hosts(two, 1.5).hosts.empty()) << "two hosts: nobody knows which is slow";
}

TEST(RankTimesTest, ASlowReaderIsNamed) {
  const RankSpread spread = spread_of({{.data = 0.1, .compute = 10, .comm = 6},
                                       {.data = 0.1, .compute = 10, .comm = 6},
                                       {.data = 5, .compute = 11, .comm = 0.1},
                                       {.data = 0.1, .compute = 10.4, .comm = 5.6, .other = 0.1}},
                                      hosts);
  EXPECT_EQ(spread.slowest, 2);
  EXPECT_EQ(spread.host, "n1");
  EXPECT_EQ(spread.part, "data");
  EXPECT_DOUBLE_EQ(spread.part_seconds, 5);
  EXPECT_NEAR(spread.others_seconds, 0.1, 1e-12);
  EXPECT_NEAR(spread.excess, 16 / ((10.1 + 10.1 + 10.6) / 3) - 1, 1e-12);
  EXPECT_DOUBLE_EQ(spread.busy.min, 10.1);
  EXPECT_DOUBLE_EQ(spread.busy.max, 16);
  EXPECT_DOUBLE_EQ(spread.comm.min, 0.1);
  EXPECT_NEAR(spread.data.mean, 5.3 / 4, 1e-12);
  EXPECT_EQ(describe(spread),
            "4 ranks worked 10.10 to 16.00 s (mean 11.70) and waited 0.10 to 6.00 s; slowest: rank 2 on n1, 56 % more "
            "than the "
            "others: data 5.00 s (others 0.10 s)");
}

TEST(RankTimesTest, ASlowCoreIsNamed) {
  const RankSpread spread = spread_of({{.data = 1, .compute = 30}, {.data = 1, .compute = 10}}, {"a", "b"});
  EXPECT_EQ(spread.slowest, 0);
  EXPECT_EQ(spread.part, "compute");
  EXPECT_EQ(
      describe(spread),
      "2 ranks worked 11.00 to 31.00 s (mean 21.00) and waited 0.00 to 0.00 s; slowest: rank 0 on a, 2.8 times the "
      "others: compute 30.00 s (others 10.00 s)");
}

TEST(RankTimesTest, EvenRanksAreEven) {
  const RankSpread spread = spread_of({{.compute = 10, .comm = 5}, {.compute = 10.5, .comm = 4.5}}, {"a", "b"});
  EXPECT_EQ(describe(spread), "2 ranks worked 10.00 to 10.50 s (mean 10.25) and waited 4.50 to 5.00 s: even");
}

TEST(RankTimesTest, NothingMeasured) {
  EXPECT_EQ(spread_of({{}, {}}, {"a", "b"}).excess, 0);
  EXPECT_EQ(spread_of({}, {}).ranks, 1);
}

}  // namespace
}  // namespace convoy
