// SPDX-License-Identifier: Apache-2.0
#include "run/heartbeats.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/temp_folder.hpp"

namespace convoy {
namespace {

Heartbeat beat_of(int rank) {
  return {.rank = rank,
          .ranks = 4,
          .host = "gpu-07",
          .pid = 4711,
          .count = 9,
          .time = 1732758000.125,
          .period = 2,
          .phase = "forward/backward",
          .epoch = 3,
          .step = 1200,
          .operation = "gradient bucket 3",
          .waiting = 1.5,
          .quiet = 0.5,
          .signal = 15,
          .exit = 5};
}

TEST(HeartbeatsTest, ComeBackAsWritten) {
  const TempFolder folder;
  const std::string path = heartbeat_path({folder.path(), "20261128T054620-0004711", 0, 0});
  ASSERT_TRUE(write_heartbeat(path, 1, beat_of(1), IfMissing::create));
  const auto found = read_heartbeats(folder.path());
  ASSERT_EQ(found.size(), 1U);
  const Heartbeat& beat = found[0];
  EXPECT_EQ(beat.rank, 1);
  EXPECT_EQ(beat.ranks, 4);
  EXPECT_EQ(beat.host, "gpu-07");
  EXPECT_EQ(beat.pid, 4711);
  EXPECT_EQ(beat.count, 9);
  EXPECT_EQ(beat.time, 1732758000.125);
  EXPECT_EQ(beat.period, 2);
  EXPECT_EQ(beat.phase, "forward/backward");
  EXPECT_EQ(beat.epoch, 3);
  EXPECT_EQ(beat.step, 1200);
  EXPECT_EQ(beat.operation, "gradient bucket 3");
  EXPECT_EQ(beat.waiting, 1.5);
  EXPECT_EQ(beat.quiet, 0.5);
  EXPECT_EQ(beat.signal, 15);
  EXPECT_EQ(beat.exit, 5);
}

/// Places of ranks that never wrote are holes in the file; ranks come sorted, from all files of a start.
TEST(HeartbeatsTest, RanksHavePlacesOfTheirOwn) {
  const TempFolder folder;
  const std::string here = folder.path();
  EXPECT_TRUE(write_heartbeat(heartbeat_path({here, "s", 4, 0}), 2, beat_of(6), IfMissing::create));
  EXPECT_TRUE(write_heartbeat(heartbeat_path({here, "s", 0, 0}), 3, beat_of(3), IfMissing::create));
  EXPECT_TRUE(write_heartbeat(heartbeat_path({here, "s", 0, 0}), 0, beat_of(0), IfMissing::create));
  EXPECT_TRUE(write_heartbeat(heartbeat_path({here, "s", 0, 0}), 0, beat_of(0), IfMissing::leave));
  std::vector<int> ranks;
  for (const Heartbeat& beat : read_heartbeats(here)) ranks.push_back(beat.rank);
  EXPECT_EQ(ranks, (std::vector<int>{0, 3, 6}));
}

TEST(HeartbeatsTest, LinesAreJsonOfOneLength) {
  const TempFolder folder;
  Heartbeat beat = beat_of(999999);
  beat.host = std::string(300, 'h');
  beat.operation = "\"quoted\\ \n" + std::string(300, 'o');
  beat.step = beat.epoch = beat.pid = beat.count = std::int64_t{1} << 52;
  beat.time = 1e10;
  const std::string path = heartbeat_path({folder.path(), "s", 0, 0});
  ASSERT_TRUE(write_heartbeat(path, 0, beat, IfMissing::create));
  ASSERT_TRUE(write_heartbeat(path, 1, beat_of(1), IfMissing::create));
  std::ifstream file(path);
  std::string first, second;
  std::getline(file, first);
  std::getline(file, second);
  EXPECT_EQ(first.size(), second.size());
  EXPECT_EQ(nlohmann::json::parse(first).at("step"), std::int64_t{1} << 52);
  EXPECT_EQ(nlohmann::json::parse(first).at("operation").get<std::string>().substr(0, 11), "?quoted? ?o");
}

TEST(HeartbeatsTest, TheNewestStartCounts) {
  const TempFolder folder;
  const std::string here = folder.path();
  const std::string old_path = heartbeat_path({here, "20261127T000000-0000001", 0, 0});
  EXPECT_TRUE(write_heartbeat(old_path, 0, beat_of(2), IfMissing::create));
  EXPECT_TRUE(
      write_heartbeat(heartbeat_path({here, "20261128T000000-0000001", 0, 0}), 0, beat_of(1), IfMissing::create));
  ASSERT_EQ(read_heartbeats(here).size(), 1U);
  EXPECT_EQ(read_heartbeats(here)[0].rank, 1);
  remove_old_heartbeats(here, "20261128T000000-0000001");
  EXPECT_FALSE(std::filesystem::exists(old_path));
  EXPECT_FALSE(write_heartbeat(old_path, 0, beat_of(2), IfMissing::leave)) << "a stale writer brings nothing back";
  EXPECT_EQ(read_heartbeats(here).size(), 1U);
}

TEST(HeartbeatsTest, UnreadableOnesAreLeftOut) {
  const TempFolder folder;
  const std::string here = folder.path();
  EXPECT_TRUE(read_heartbeats(here + "/none").empty());
  EXPECT_FALSE(write_heartbeat(here + "/none/s-000000.jsonl", 0, beat_of(0), IfMissing::create));
  std::ofstream(here + "/s-000000.jsonl") << "{\"rank\": 1\n{\"rank\": 2, \"host\": 7}\n[]\n";
  const auto found = read_heartbeats(here);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rank, 2);
  EXPECT_EQ(found[0].host, "");
}

}  // namespace
}  // namespace convoy
