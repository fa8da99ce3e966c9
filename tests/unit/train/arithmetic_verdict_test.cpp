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
  const std::vector<std::string> hosts = hosts_of({"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"});
  for (int wrong = 0; wrong < 3; ++wrong) {
    std::vector<Repetition> all{{4, 7, 7}, {9, 7, 7}, {2, 7, 7}};
    all[static_cast<std::size_t>(wrong)].first = all[static_cast<std::size_t>(wrong)].second = 8;
    const Verdict verdict = judge(all, hosts);
    EXPECT_EQ(verdict.wrong, std::vector<int>{all[static_cast<std::size_t>(wrong)].rank});
    EXPECT_TRUE(verdict.certain);
  }
}

TEST(Judge, NamesWhoRepeatsItselfWithOtherBits) {
  const std::vector<std::string> hosts = hosts_of({"a", "b"});
  const std::vector<Repetition> all{{0, 7, 7}, {1, 8, 7}};
  const Verdict verdict = judge(all, hosts);
  EXPECT_EQ(verdict.wrong, std::vector<int>{1});
  EXPECT_TRUE(verdict.certain) << "also where two ranks stand against each other";
}

TEST(Judge, TwoThatStandAgainstEachOtherCantBeTold) {
  const std::vector<std::string> hosts = hosts_of({"a", "b", "c"});
  const std::vector<Repetition> two{{0, 7, 7}, {1, 8, 8}}, three{{0, 7, 7}, {1, 8, 8}, {2, 9, 9}};
  EXPECT_EQ(judge(two, hosts).wrong, (std::vector<int>{0, 1}));
  EXPECT_FALSE(judge(two, hosts).certain);
  EXPECT_EQ(judge(three, hosts).wrong, (std::vector<int>{0, 1, 2}));
  EXPECT_FALSE(judge(three, hosts).certain);
}

TEST(Judge, AHostHasOneVote) {
  const std::vector<std::string> hosts = hosts_of({"a", "a", "b", "b"});
  const std::vector<Repetition> alike{{2, 8, 8}, {0, 7, 7}, {1, 7, 7}};
  EXPECT_EQ(judge(alike, hosts).wrong, (std::vector<int>{2, 0, 1})) << "two ranks of a faulty host may err alike";
  EXPECT_FALSE(judge(alike, hosts).certain);
  const std::vector<Repetition> unsteady{{2, 8, 8}, {0, 7, 7}, {1, 7, 6}};
  EXPECT_EQ(judge(unsteady, hosts).wrong, std::vector<int>{1}) << "which does not repeat its own bits";
  EXPECT_TRUE(judge(unsteady, hosts).certain);
  const std::vector<Repetition> disagree{{0, 7, 7}, {1, 8, 8}, {2, 8, 8}};
  EXPECT_EQ(judge(disagree, hosts).wrong, std::vector<int>{0}) << "a host whose ranks disagree is faulty";
  EXPECT_TRUE(judge(disagree, hosts).certain);
}

/// The ranks that judge_weights names; a question mark at the end: one of them.
std::string named(const std::vector<std::uint64_t>& digests, std::initializer_list<const char*> hosts) {
  const auto verdict = judge_weights(digests, hosts_of(hosts));
  if (!verdict) return "none";
  std::string text;
  for (const int rank : verdict->wrong) text += std::to_string(rank);
  return text + (verdict->certain ? "" : "?");
}

TEST(JudgeWeights, NamesTheMinority) {
  EXPECT_EQ(named({5, 5, 5}, {"a", "b", "c"}), "none");
  EXPECT_EQ(named({5, 5, 6, 5}, {"a", "b", "c", "d"}), "2");
  EXPECT_EQ(named({5, 5, 6, 6}, {"a", "b", "c", "d"}), "0123?") << "no side is more than half";
  EXPECT_EQ(named({5, 6, 5}, {"a", "a", "a"}), "1") << "the ranks of one host";
  EXPECT_EQ(named({5, 6}, {"a", "a"}), "01?");
}

TEST(JudgeWeights, AHostHasOneVote) {
  EXPECT_EQ(named({6, 6, 5}, {"a", "a", "b"}), "012?");
  EXPECT_EQ(named({6, 6, 6, 5, 5, 5, 5}, {"a", "a", "a", "a", "b", "b", "b"}), "012") << "a is at odds with itself";
  EXPECT_EQ(named({6, 6, 6, 5, 5}, {"a", "a", "a", "b", "c"}), "012") << "two hosts against one, with fewer ranks";
  EXPECT_EQ(named({5, 5, 5, 6, 5, 5}, {"a", "a", "b", "b", "c", "c"}), "3") << "b has no vote of its own";
  EXPECT_EQ(named({5, 5, 6, 6, 7, 7}, {"a", "a", "b", "b", "c", "c"}), "012345?");
}

}  // namespace
}  // namespace convoy
