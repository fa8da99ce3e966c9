// SPDX-License-Identifier: Apache-2.0
// Hosts of other shapes, as /sys and /proc describe them.
#include "core/cores.hpp"

#include <fmt/core.h>
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

/// Two NUMA nodes of two cores of two hardware threads; thread n + 4 is the second one of core n.
void put_two_sockets(const TempFolder& root) {
  for (int id = 0; id < 8; ++id) {
    put(root, fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", id),
        fmt::format("{},{}", id % 4, id % 4 + 4));
  }
  put(root, "/sys/devices/system/node/has_cpu", "0-1");
  put(root, "/sys/devices/system/node/node0/cpulist", "0-1,4-5");
  put(root, "/sys/devices/system/node/node1/cpulist", "2-3,6-7");
}

TEST(CoresTest, ListsReadAndPrint) {
  EXPECT_THAT(parse_cpu_list("0-3,8,10-11"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(parse_cpu_list("5"), ElementsAre(5));
  for (const char* wrong : {"", "x", "1-", "-1", "3-x", "0-99999999"})
    EXPECT_TRUE(parse_cpu_list(wrong).empty()) << wrong;
  EXPECT_EQ(print_cpu_list({10, 8, 0, 1, 2, 3, 11}), "0-3,8,10-11");
  EXPECT_EQ(print_cpu_list({4, 6}), "4,6");
  EXPECT_EQ(print_cpu_list({}), "");
}

TEST(CoresTest, KnowsCoresAndNodes) {
  const TempFolder root;
  put_two_sockets(root);
  const auto cpus = describe_cpus({0, 1, 2, 3, 4, 5, 6, 7}, root.path());
  EXPECT_THAT(cpus, ElementsAre(Cpu{0, 0, 0}, Cpu{4, 0, 0}, Cpu{1, 1, 0}, Cpu{5, 1, 0}, Cpu{2, 2, 1}, Cpu{6, 2, 1},
                                Cpu{3, 3, 1}, Cpu{7, 3, 1}));
  EXPECT_EQ(count_cores(cpus), 4);
  EXPECT_EQ(count_cores(describe_cpus({4, 0}, root.path())), 1);
  EXPECT_THAT(describe_cpus({2, 9}, root.path() + "/none"), ElementsAre(Cpu{2, 2, 0}, Cpu{9, 9, 0}))
      << "nothing is known";
}

TEST(CoresTest, DealsWholeCores) {
  const TempFolder root;
  put_two_sockets(root);
  const auto cpus = describe_cpus({0, 1, 2, 3, 4, 5, 6, 7}, root.path());
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
