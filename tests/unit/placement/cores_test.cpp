// SPDX-License-Identifier: Apache-2.0
#include "core/topology.hpp"

#include <gmock/gmock.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "support/temp_folder.hpp"

namespace convoy {
namespace {

using testing::ElementsAre;

void put(const TempFolder& root, const std::string& path, const std::string& text) {
  const std::filesystem::path file = root.path() + path;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text << "\n";
}

TEST(CoresTest, ListsPrint) {
  EXPECT_EQ(print_cpu_list({10, 8, 0, 1, 2, 3, 11}), "0-3,8,10-11");
  EXPECT_EQ(print_cpu_list({4, 6}), "4,6");
  EXPECT_EQ(print_cpu_list({}), "");
}

TEST(CoresTest, DealsWholeCores) {
  // Two NUMA nodes of two cores of two hardware threads.
  const std::vector<Cpu> cpus = {{0, 0, 0}, {4, 0, 0}, {1, 1, 0}, {5, 1, 0},
                                 {2, 2, 1}, {6, 2, 1}, {3, 3, 1}, {7, 3, 1}};
  EXPECT_THAT(deal_cores(cpus, 1), ElementsAre(ElementsAre(0, 4, 1, 5, 2, 6, 3, 7)));
  EXPECT_THAT(deal_cores(cpus, 2), ElementsAre(ElementsAre(0, 4, 1, 5), ElementsAre(2, 6, 3, 7)));
  EXPECT_THAT(deal_cores(cpus, 3), ElementsAre(ElementsAre(0, 4), ElementsAre(1, 5), ElementsAre(2, 6, 3, 7)));
  EXPECT_THAT(deal_cores(cpus, 4),
              ElementsAre(ElementsAre(0, 4), ElementsAre(1, 5), ElementsAre(2, 6), ElementsAre(3, 7)));
  EXPECT_TRUE(deal_cores(cpus, 5).empty());
}

/// Every core once, all shares within one of each other.
TEST(CoresTest, DealsEvenly) {
  for (int cores = 1; cores <= 20; ++cores) {
    std::vector<Cpu> cpus;
    for (int id = 0; id < cores; ++id) cpus.push_back({id, id, 0});
    for (int shares = 1; shares <= cores; ++shares) {
      const auto dealt = deal_cores(cpus, shares);
      std::vector<int> all;
      for (const auto& share : dealt) {
        EXPECT_GE(static_cast<int>(share.size()), cores / shares);
        EXPECT_LE(static_cast<int>(share.size()), (cores + shares - 1) / shares);
        all.insert(all.end(), share.begin(), share.end());
      }
      EXPECT_EQ(static_cast<int>(all.size()), cores);
      EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
    }
  }
}

TEST(CoresTest, QuotaOfControlGroups) {
  const TempFolder root;
  EXPECT_EQ(cpu_quota(root.path()), 0) << "nothing is known";
  put(root, "/proc/self/cgroup", "0::/jobs/job_7/step");
  put(root, "/sys/fs/cgroup/jobs/job_7/step/cpu.max", "max 100000");
  EXPECT_EQ(cpu_quota(root.path()), 0);
  put(root, "/sys/fs/cgroup/jobs/job_7/cpu.max", "350000 100000");
  EXPECT_EQ(cpu_quota(root.path()), 3.5) << "the group above has a limit";
  put(root, "/sys/fs/cgroup/cpu.max", "200000 100000");
  EXPECT_EQ(cpu_quota(root.path()), 2) << "as in a container, whose root has one";
}

TEST(CoresTest, QuotaOfTheOlderControlGroups) {
  const TempFolder root;
  put(root, "/proc/self/cgroup", "3:cpuset:/x\n4:cpu,cpuacct:/docker/abc\n0::/docker/abc");
  put(root, "/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "150000");
  put(root, "/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cpu_quota(root.path()), 1.5);
  put(root, "/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1");
  EXPECT_EQ(cpu_quota(root.path()), 0);
}

TEST(CoresTest, ThreadsKeepToTheShare) {
  const auto& given = cores_at_start();
  ASSERT_FALSE(given.empty());
  std::thread([&] {
    ASSERT_TRUE(keep_to_cores({given.back()}));
    use_all_kept_cores();
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    EXPECT_EQ(CPU_COUNT(&set), 1);
    EXPECT_TRUE(CPU_ISSET(static_cast<std::size_t>(given.back()), &set));
    EXPECT_FALSE(keep_to_cores({}));
    EXPECT_FALSE(keep_to_cores({8000})) << "this host has no such core";
    EXPECT_TRUE(keep_to_cores(given));
  }).join();
}

}  // namespace
}  // namespace convoy
