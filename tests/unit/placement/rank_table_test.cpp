// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gmock/gmock.h>

#include "engine/placement.hpp"

namespace convoy {
namespace {

using testing::HasSubstr;

JobPlacement hosts_of(int hosts, int ranks_each) {
  JobPlacement placement;
  for (int h = 0; h < hosts; ++h) {
    for (int r = 0; r < ranks_each; ++r) {
      RankPlacement own{.rank = h * ranks_each + r, .node_rank = r, .host = fmt::format("n{}", h)};
      own.cpus = {2 * r, 2 * r + 1};
      own.nodes = {r < ranks_each / 2 ? 0 : 1};
      own.cores = own.threads = 2;
      own.binding = Binding::launcher;
      own.device = fmt::format("H100 GPU-{}-ab", 100 * h + r);
      placement.ranks.push_back(own);
    }
  }
  return placement;
}

TEST(RankTableTest, FewRanksHaveARowEach) {
  EXPECT_EQ(table_of(hosts_of(2, 2)),
            "rank  host  local  device           cores  NUMA  threads  bound by\n"
            "0     n0    0      H100 GPU-0-ab    0-1    0     2        launcher\n"
            "1     n0    1      H100 GPU-1-ab    2-3    1     2        launcher\n"
            "2     n1    0      H100 GPU-100-ab  0-1    0     2        launcher\n"
            "3     n1    1      H100 GPU-101-ab  2-3    1     2        launcher\n");
}

TEST(RankTableTest, EqualHostsFold) {
  EXPECT_EQ(table_of(hosts_of(8, 4)),
            "rank  host                local  device    cores        NUMA  threads  bound by\n"
            "0-31  n0 to n7 (8 hosts)  0-3    H100 GPU  0-7, 2 each  0-1   2        launcher\n");
}

TEST(RankTableTest, AnUnlikeHostStandsAlone) {
  JobPlacement placement = hosts_of(8, 4);
  for (int r = 12; r < 16; ++r) placement.ranks[static_cast<std::size_t>(r)].threads = 1;
  const std::string table = table_of(placement);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 4);
  EXPECT_THAT(table, HasSubstr("0-11 "));
  EXPECT_THAT(table, HasSubstr("n0 to n2 (3 hosts)"));
  EXPECT_THAT(table, HasSubstr("\n12-15  n3 "));
  EXPECT_THAT(table, HasSubstr("\n16-31  n4 to n7 (4 hosts)"));
}

TEST(RankTableTest, AnUnlikeRankStandsAlone) {
  JobPlacement placement = hosts_of(5, 4);
  placement.ranks[6].binding = Binding::shared;
  const std::string table = table_of(placement);
  EXPECT_THAT(table, HasSubstr("\n6 "));
  EXPECT_THAT(table, HasSubstr("nobody (shared)"));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 1 + 1 + 3 + 1);
}

}  // namespace
}  // namespace convoy
