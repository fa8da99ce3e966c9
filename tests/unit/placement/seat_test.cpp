// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "engine/placement.hpp"

namespace convoy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A host of `online` cores without hardware threads, on two NUMA nodes.
Given given(std::vector<int> ids, int online = 8) {
  Given result{.ids = std::move(ids), .core_of = {}, .node_of = {}, .quota = 0, .online = online};
  for (const int id : result.ids) {
    result.core_of.push_back(id);
    result.node_of.push_back(id < online / 2 ? 0 : 1);
  }
  return result;
}
const std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7};

TEST(SeatTest, UnboundRanksGetSharesOfTheirOwn) {
  const Seating seating = seat({"a", "a", "b", "b"}, {given(all), given(all), given(all), given(all)}, Bind::cores, 0);
  EXPECT_EQ(seating.threads, 4);
  for (const std::size_t first : {0, 2}) {
    EXPECT_THAT(seating.seats[first].cpus, ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(seating.seats[first].nodes, ElementsAre(0));
    EXPECT_THAT(seating.seats[first + 1].cpus, ElementsAre(4, 5, 6, 7));
    EXPECT_THAT(seating.seats[first + 1].nodes, ElementsAre(1));
    EXPECT_EQ(seating.seats[first].binding, Binding::convoy);
    EXPECT_EQ(seating.seats[first].node_rank, 0);
    EXPECT_EQ(seating.seats[first + 1].node_rank, 1);
  }
  EXPECT_THAT(find_overbooked_cores(seating), IsEmpty());
}

/// As on hosts whose first GPUs are on the last NUMA node.
TEST(SeatTest, RanksSitNearTheirGpus) {
  std::vector<Given> four(4, given(all));
  four[0].gpu_node = four[1].gpu_node = 1;
  four[2].gpu_node = four[3].gpu_node = 0;
  const Seating seating = seat({"a", "a", "a", "a"}, four, Bind::cores, 0);
  EXPECT_THAT(seating.seats[0].cpus, ElementsAre(4, 5));
  EXPECT_THAT(seating.seats[1].cpus, ElementsAre(6, 7));
  EXPECT_THAT(seating.seats[2].cpus, ElementsAre(0, 1));
  EXPECT_THAT(seating.seats[3].nodes, ElementsAre(0));
  four[3].gpu_node = -1;
  EXPECT_THAT(seat({"a", "a", "a", "a"}, four, Bind::cores, 0).seats[0].cpus, ElementsAre(0, 1)) << "one is not known";
  std::vector<Given> crowded(5, given(all));
  for (Given& one : crowded) one.gpu_node = 0;
  EXPECT_THAT(seat({"a", "a", "a", "a", "a"}, crowded, Bind::cores, 0).seats[4].nodes, ElementsAre(1))
      << "a node without cores enough";
}

TEST(SeatTest, ALaunchersBindingStays) {
  const Seating seating = seat({"a", "a"}, {given({0, 1}), given({4, 5, 6})}, Bind::cores, 0);
  EXPECT_THAT(seating.seats[0].cpus, ElementsAre(0, 1));
  EXPECT_THAT(seating.seats[1].cpus, ElementsAre(4, 5, 6));
  EXPECT_EQ(seating.seats[0].binding, Binding::launcher);
  EXPECT_EQ(seating.threads, 2) << "the same on all ranks";
  EXPECT_THAT(find_overbooked_cores(seating), IsEmpty());
}

TEST(SeatTest, OneRankAHostKeepsIt) {
  const Seating seating = seat({"a", "b"}, {given(all), given({0, 1, 2})}, Bind::cores, 0);
  EXPECT_EQ(seating.seats[0].binding, Binding::whole);
  EXPECT_EQ(seating.seats[1].binding, Binding::launcher) << "a part of the host";
  EXPECT_EQ(seating.threads, 3);
}

TEST(SeatTest, BindNoneSharesEvenly) {
  const Seating seating = seat({"a", "a"}, {given(all), given(all)}, Bind::none, 0);
  EXPECT_EQ(seating.seats[1].cpus, all);
  EXPECT_EQ(seating.seats[1].binding, Binding::shared);
  EXPECT_EQ(seating.threads, 4);
  EXPECT_THAT(find_overbooked_cores(seating), IsEmpty());
}

/// srun without task binding, two ranks a socket.
TEST(SeatTest, GroupsOfRanksAreDealtTheirOwnCores) {
  const std::vector<int> low{0, 1, 2, 3}, high{4, 5, 6, 7};
  const Seating seating =
      seat({"a", "a", "a", "a"}, {given(low), given(high), given(low), given(high)}, Bind::cores, 0);
  EXPECT_THAT(seating.seats[0].cpus, ElementsAre(0, 1));
  EXPECT_THAT(seating.seats[2].cpus, ElementsAre(2, 3));
  EXPECT_THAT(seating.seats[1].cpus, ElementsAre(4, 5));
  EXPECT_THAT(seating.seats[3].cpus, ElementsAre(6, 7));
}

TEST(SeatTest, MoreRanksThanCoresAreOverbooked) {
  const Seating seating = seat({"a", "a", "a"}, {given({2, 3}), given({2, 3}), given({2, 3})}, Bind::cores, 0);
  EXPECT_EQ(seating.seats[0].binding, Binding::shared);
  EXPECT_EQ(seating.threads, 1);
  EXPECT_THAT(find_overbooked_cores(seating), ElementsAre("a: ranks 0-2 run 3 threads on 2 cores (cores 2-3)"));
}

/// Neither may be dealt shares: the launcher meant something else.
TEST(SeatTest, PartsInCommonAreOverbooked) {
  const Seating seating = seat({"a", "a", "a"}, {given({0, 1}), given({1, 2}), given({5, 6})}, Bind::cores, 0);
  EXPECT_EQ(seating.seats[0].binding, Binding::launcher);
  EXPECT_THAT(find_overbooked_cores(seating), ElementsAre("a: ranks 0-1 run 4 threads on 3 cores (cores 0-2)"));
}

TEST(SeatTest, ThreadsThatWereAskedForCount) {
  std::vector<Given> two{given(all), given(all)};
  two[0].wished_threads = 3;
  two[1].wished_threads = 2;
  EXPECT_EQ(seat({"a", "a"}, two, Bind::cores, 0).threads, 2) << "OMP_NUM_THREADS, the lowest";
  const Seating seating = seat({"a", "a"}, two, Bind::cores, 5);
  EXPECT_EQ(seating.threads, 5);
  EXPECT_THAT(find_overbooked_cores(seating), ElementsAre("a: rank 0 runs 5 threads on 4 cores (cores 0-3)",
                                                          "a: rank 1 runs 5 threads on 4 cores (cores 4-7)"));
}

TEST(SeatTest, AControlGroupLimitsThreads) {
  std::vector<Given> two{given(all), given(all)};
  two[0].quota = two[1].quota = 2.5;
  const Seating seating = seat({"a", "a"}, two, Bind::cores, 0);
  EXPECT_EQ(seating.threads, 1);
  EXPECT_EQ(seating.seats[0].cpus, all) << "other containers may be on the first cores: the system chooses";
  EXPECT_THAT(find_overbooked_cores(seating), IsEmpty());
  EXPECT_THAT(find_overbooked_cores(seat({"a", "a"}, two, Bind::cores, 2)),
              ElementsAre(HasSubstr("a: 4 threads of 2 ranks, but its control group allows 2.5 cores")));
}

TEST(SeatTest, SharedGpusAreFound) {
  Seating seating = seat({"a", "a", "b", "b"}, {given(all), given(all), given(all), given(all)}, Bind::cores, 0);
  EXPECT_THAT(find_shared_devices(seating), IsEmpty()) << "no rank has one";
  for (Seat& one : seating.seats) one.identity = fmt::format("GPU-{}", one.rank);
  EXPECT_THAT(find_shared_devices(seating), IsEmpty());
  seating.seats[3].identity = "GPU-2";
  ASSERT_EQ(find_shared_devices(seating).size(), 1U);
  EXPECT_THAT(find_shared_devices(seating)[0].text, HasSubstr("b: 2 ranks share GPU-2"));
  EXPECT_THAT(find_shared_devices(seating)[0].ranks, ElementsAre(2, 3));
  seating.seats[3].identity.clear();
  ASSERT_EQ(find_shared_devices(seating).size(), 1U);
  EXPECT_THAT(find_shared_devices(seating)[0].ranks, ElementsAre(3));
}

TEST(SeatTest, OpenMpsBindingStays) {
  std::vector<Given> two{given(all), given(all)};
  two[1].openmp_binds = two[0].openmp_binds = true;
  EXPECT_EQ(seat({"a", "a"}, two, Bind::cores, 0).seats[0].binding, Binding::openmp);
}

TEST(SeatTest, HardwareThreadsOfACoreAreOneCore) {
  Given host = given(all);
  for (std::size_t i = 0; i < all.size(); ++i) host.core_of[i] = static_cast<int>(i) % 4;
  host.node_of.assign(8, 0);
  const Seating seating = seat({"a", "a"}, {host, host}, Bind::cores, 0);
  EXPECT_EQ(seating.threads, 2);
  EXPECT_EQ(seating.seats[0].cores, 2);
  EXPECT_THAT(seating.seats[0].cpus, ElementsAre(0, 4, 1, 5));
}

}  // namespace
}  // namespace convoy
