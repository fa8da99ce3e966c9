// SPDX-License-Identifier: Apache-2.0
// Which ranks repeat the step of a rank, and which of them are wrong.
#include "train/arithmetic_verdict.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace convoy {
namespace {

std::vector<std::string> hosts_of(std::initializer_list<const char*> names) { return {names.begin(), names.end()}; }

TEST(ChooseRepeaters, EveryRankHasItsTurnWithOthersEachRound) {
  const std::vector<std::string> hosts = hosts_of({"a", "b", "c", "d", "e"});
  std::map<int, std::set<int>> second;
  for (Index check = 0; check < 20; ++check) {
    const std::vector<int> ranks = choose_repeaters(check, 5, hosts);
    ASSERT_EQ(ranks.size(), 3U);
    EXPECT_EQ(ranks[0], check % 5);
    EXPECT_EQ(std::set<int>(ranks.begin(), ranks.end()).size(), 3U) << "three different ranks";
    second[ranks[0]].insert(ranks[1]);
  }
  for (const auto& [rank, others] : second) EXPECT_EQ(others.size(), 4U) << "rank " << rank << ": all others in turn";
}

TEST(ChooseRepeaters, PrefersOtherHosts) {
  const std::vector<std::string> hosts = hosts_of({"a", "a", "b", "b", "c", "c"});
  for (Index check = 0; check < 60; ++check) {
    std::set<std::string> names;
    for (const int rank : choose_repeaters(check, 6, hosts)) names.insert(hosts[static_cast<std::size_t>(rank)]);
    EXPECT_EQ(names.size(), 3U) << "check " << check;
  }
}

TEST(ChooseRepeaters, TakesOnlyRanksWithAReplicaAndWhatThereIs) {
  const std::vector<std::string> hosts = hosts_of({"a", "a", "a", "b"});
  EXPECT_EQ(choose_repeaters(0, 2, hosts), (std::vector<int>{0, 1}));
  EXPECT_EQ(choose_repeaters(3, 2, hosts), (std::vector<int>{1, 0}));
  EXPECT_EQ(choose_repeaters(2, 3, hosts), (std::vector<int>{2, 0, 1})) << "all on one host: its ranks";
}

TEST(Judge, NamesWhoDisagreesWithTheMajority) {
  for (int wrong = 0; wrong < 3; ++wrong) {
    std::vector<Repetition> all{{4, 7, 7}, {9, 7, 7}, {2, 7, 7}};
    all[static_cast<std::size_t>(wrong)].first = all[static_cast<std::size_t>(wrong)].second = 8;
    const Verdict verdict = judge(all);
    EXPECT_EQ(verdict.wrong, std::vector<int>{all[static_cast<std::size_t>(wrong)].rank});
    EXPECT_TRUE(verdict.certain);
  }
}

TEST(Judge, NamesWhoRepeatsItselfWithOtherBits) {
  const std::vector<Repetition> all{{0, 7, 7}, {1, 8, 7}};
  const Verdict verdict = judge(all);
  EXPECT_EQ(verdict.wrong, std::vector<int>{1});
  EXPECT_TRUE(verdict.certain) << "also where two ranks stand against each other";
}

TEST(Judge, TwoThatStandAgainstEachOtherCantBeTold) {
  const std::vector<Repetition> two{{0, 7, 7}, {1, 8, 8}}, three{{0, 7, 7}, {1, 8, 8}, {2, 9, 9}};
  EXPECT_EQ(judge(two).wrong, (std::vector<int>{0, 1}));
  EXPECT_FALSE(judge(two).certain);
  EXPECT_EQ(judge(three).wrong, (std::vector<int>{0, 1, 2}));
  EXPECT_FALSE(judge(three).certain);
}

TEST(JudgeWeights, NamesTheMinority) {
  EXPECT_FALSE(judge_weights(std::vector<std::uint64_t>{5, 5, 5}).has_value());
  const auto one = judge_weights(std::vector<std::uint64_t>{5, 5, 6, 5});
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->wrong, std::vector<int>{2});
  EXPECT_TRUE(one->certain);
  const auto split = judge_weights(std::vector<std::uint64_t>{5, 5, 6, 6});
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->wrong, (std::vector<int>{0, 1, 2, 3})) << "no side is more than half";
  EXPECT_FALSE(split->certain);
}

}  // namespace
}  // namespace convoy
