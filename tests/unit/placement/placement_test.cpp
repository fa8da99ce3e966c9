// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "engine/placement.hpp"

namespace convoy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A host of `online` cores without hardware threads, on two NUMA nodes.
HostView given(std::vector<int> ids, int online = 8) {
  HostView result{.ids = std::move(ids), .core_of = {}, .node_of = {}, .quota = 0, .online = online};
  for (const int id : result.ids) {
    result.core_of.push_back(id);
    result.node_of.push_back(id < online / 2 ? 0 : 1);
  }
  return result;
}
const std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7};

TEST(PlacementTest, UnboundRanksGetSharesOfTheirOwn) {
  const JobPlacement placement =
      place({"a", "a", "b", "b"}, {given(all), given(all), given(all), given(all)}, Bind::cores, 0);
  EXPECT_EQ(placement.threads, 4);
  for (const std::size_t first : {0, 2}) {
    EXPECT_THAT(placement.ranks[first].cpus, ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(placement.ranks[first].nodes, ElementsAre(0));
    EXPECT_THAT(placement.ranks[first + 1].cpus, ElementsAre(4, 5, 6, 7));
    EXPECT_THAT(placement.ranks[first + 1].nodes, ElementsAre(1));
    EXPECT_EQ(placement.ranks[first].binding, Binding::convoy);
    EXPECT_EQ(placement.ranks[first].node_rank, 0);
    EXPECT_EQ(placement.ranks[first + 1].node_rank, 1);
  }
  EXPECT_THAT(find_overbooked_cores(placement), IsEmpty());
}

/// As on hosts whose first GPUs are on the last NUMA node.
TEST(PlacementTest, RanksSitNearTheirGpus) {
  std::vector<HostView> four(4, given(all));
  four[0].gpu_node = four[1].gpu_node = 1;
  four[2].gpu_node = four[3].gpu_node = 0;
  const JobPlacement placement = place({"a", "a", "a", "a"}, four, Bind::cores, 0);
  EXPECT_THAT(placement.ranks[0].cpus, ElementsAre(4, 5));
  EXPECT_THAT(placement.ranks[1].cpus, ElementsAre(6, 7));
  EXPECT_THAT(placement.ranks[2].cpus, ElementsAre(0, 1));
  EXPECT_THAT(placement.ranks[3].nodes, ElementsAre(0));
  four[3].gpu_node = -1;
  EXPECT_THAT(place({"a", "a", "a", "a"}, four, Bind::cores, 0).ranks[0].cpus, ElementsAre(0, 1)) << "one is not known";
  std::vector<HostView> crowded(5, given(all));
  for (HostView& one : crowded) one.gpu_node = 0;
  EXPECT_THAT(place({"a", "a", "a", "a", "a"}, crowded, Bind::cores, 0).ranks[4].nodes, ElementsAre(1))
      << "a node without cores enough";
}

TEST(PlacementTest, ALaunchersBindingStays) {
  const JobPlacement placement = place({"a", "a"}, {given({0, 1}), given({4, 5, 6})}, Bind::cores, 0);
  EXPECT_THAT(placement.ranks[0].cpus, ElementsAre(0, 1));
  EXPECT_THAT(placement.ranks[1].cpus, ElementsAre(4, 5, 6));
  EXPECT_EQ(placement.ranks[0].binding, Binding::launcher);
  EXPECT_EQ(placement.threads, 2) << "the same on all ranks";
  EXPECT_THAT(find_overbooked_cores(placement), IsEmpty());
}

TEST(PlacementTest, OneRankAHostKeepsIt) {
  const JobPlacement placement = place({"a", "b"}, {given(all), given({0, 1, 2})}, Bind::cores, 0);
  EXPECT_EQ(placement.ranks[0].binding, Binding::whole);
  EXPECT_EQ(placement.ranks[1].binding, Binding::launcher) << "a part of the host";
  EXPECT_EQ(placement.threads, 3);
}

TEST(PlacementTest, BindNoneSharesEvenly) {
  const JobPlacement placement = place({"a", "a"}, {given(all), given(all)}, Bind::none, 0);
  EXPECT_EQ(placement.ranks[1].cpus, all);
  EXPECT_EQ(placement.ranks[1].binding, Binding::shared);
  EXPECT_EQ(placement.threads, 4);
  EXPECT_THAT(find_overbooked_cores(placement), IsEmpty());
}

/// srun without task binding, two ranks a socket.
TEST(PlacementTest, GroupsOfRanksAreDealtTheirOwnCores) {
  const std::vector<int> low{0, 1, 2, 3}, high{4, 5, 6, 7};
  const JobPlacement placement =
      place({"a", "a", "a", "a"}, {given(low), given(high), given(low), given(high)}, Bind::cores, 0);
  EXPECT_THAT(placement.ranks[0].cpus, ElementsAre(0, 1));
  EXPECT_THAT(placement.ranks[2].cpus, ElementsAre(2, 3));
  EXPECT_THAT(placement.ranks[1].cpus, ElementsAre(4, 5));
  EXPECT_THAT(placement.ranks[3].cpus, ElementsAre(6, 7));
}

TEST(PlacementTest, MoreRanksThanCoresAreOverbooked) {
  const JobPlacement placement = place({"a", "a", "a"}, {given({2, 3}), given({2, 3}), given({2, 3})}, Bind::cores, 0);
  EXPECT_EQ(placement.ranks[0].binding, Binding::shared);
  EXPECT_EQ(placement.threads, 1);
  EXPECT_THAT(find_overbooked_cores(placement), ElementsAre("a: ranks 0-2 run 3 threads on 2 cores (cores 2-3)"));
}

/// Neither may be dealt shares: the launcher meant something else.
TEST(PlacementTest, PartsInCommonAreOverbooked) {
  const JobPlacement placement = place({"a", "a", "a"}, {given({0, 1}), given({1, 2}), given({5, 6})}, Bind::cores, 0);
  EXPECT_EQ(placement.ranks[0].binding, Binding::launcher);
  EXPECT_THAT(find_overbooked_cores(placement), ElementsAre("a: ranks 0-1 run 4 threads on 3 cores (cores 0-2)"));
}

TEST(PlacementTest, ThreadsThatWereAskedForCount) {
  std::vector<HostView> two{given(all), given(all)};
  two[0].omp_num_threads = 3;
  two[1].omp_num_threads = 2;
  EXPECT_EQ(place({"a", "a"}, two, Bind::cores, 0).threads, 2) << "OMP_NUM_THREADS, the lowest";
  const JobPlacement placement = place({"a", "a"}, two, Bind::cores, 5);
  EXPECT_EQ(placement.threads, 5);
  EXPECT_THAT(find_overbooked_cores(placement), ElementsAre("a: rank 0 runs 5 threads on 4 cores (cores 0-3)",
                                                            "a: rank 1 runs 5 threads on 4 cores (cores 4-7)"));
}

TEST(PlacementTest, AControlGroupLimitsThreads) {
  std::vector<HostView> two{given(all), given(all)};
  two[0].quota = two[1].quota = 2.5;
  const JobPlacement placement = place({"a", "a"}, two, Bind::cores, 0);
  EXPECT_EQ(placement.threads, 1);
  EXPECT_EQ(placement.ranks[0].cpus, all) << "other containers may be on the first cores: the system chooses";
  EXPECT_THAT(find_overbooked_cores(placement), IsEmpty());
  EXPECT_THAT(find_overbooked_cores(place({"a", "a"}, two, Bind::cores, 2)),
              ElementsAre(HasSubstr("a: 4 threads of 2 ranks, but its control group allows 2.5 cores")));
}

TEST(PlacementTest, SharedGpusAreFound) {
  JobPlacement placement =
      place({"a", "a", "b", "b"}, {given(all), given(all), given(all), given(all)}, Bind::cores, 0);
  EXPECT_THAT(find_shared_devices(placement), IsEmpty()) << "no rank has one";
  for (RankPlacement& one : placement.ranks) one.identity = fmt::format("GPU-{}", one.rank);
  EXPECT_THAT(find_shared_devices(placement), IsEmpty());
  placement.ranks[3].identity = "GPU-2";
  ASSERT_EQ(find_shared_devices(placement).size(), 1U);
  EXPECT_THAT(find_shared_devices(placement)[0].text, HasSubstr("b: 2 ranks share GPU-2"));
  EXPECT_THAT(find_shared_devices(placement)[0].ranks, ElementsAre(2, 3));
  placement.ranks[3].identity.clear();
  ASSERT_EQ(find_shared_devices(placement).size(), 1U);
  EXPECT_THAT(find_shared_devices(placement)[0].ranks, ElementsAre(3));
}

TEST(PlacementTest, OpenMpsBindingStays) {
  std::vector<HostView> two{given(all), given(all)};
  two[1].openmp_binds = two[0].openmp_binds = true;
  EXPECT_EQ(place({"a", "a"}, two, Bind::cores, 0).ranks[0].binding, Binding::openmp);
}

TEST(PlacementTest, HardwareThreadsOfACoreAreOneCore) {
  HostView host = given(all);
  for (std::size_t i = 0; i < all.size(); ++i) host.core_of[i] = static_cast<int>(i) % 4;
  host.node_of.assign(8, 0);
  const JobPlacement placement = place({"a", "a"}, {host, host}, Bind::cores, 0);
  EXPECT_EQ(placement.threads, 2);
  EXPECT_EQ(placement.ranks[0].cores, 2);
  EXPECT_THAT(placement.ranks[0].cpus, ElementsAre(0, 4, 1, 5));
}

}  // namespace
}  // namespace convoy
