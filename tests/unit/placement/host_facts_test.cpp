// SPDX-License-Identifier: Apache-2.0
#include "core/host_facts.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "support/temp_folder.hpp"

namespace convoy {
namespace {

void put(const TempFolder& root, const std::string& path, const std::string& text) {
  const std::filesystem::path file = root.path() + path;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text << "\n";
}

TEST(HostFactsTest, LinksThatAreUp) {
  const TempFolder root;
  EXPECT_TRUE(network_links(root.path()).empty());
  put(root, "/sys/class/net/lo/operstate", "up");
  put(root, "/sys/class/net/eth0/operstate", "up");
  put(root, "/sys/class/net/eth0/speed", "25000");
  put(root, "/sys/class/net/eth1/operstate", "down");
  put(root, "/sys/class/net/eth2/operstate", "up");
  put(root, "/sys/class/net/eth2/speed", "-1");
  put(root, "/sys/class/net/eth3/operstate", "up");
  put(root, "/sys/class/net/eth3/speed", "100");
  put(root, "/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
  put(root, "/sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)");
  put(root, "/sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN");
  EXPECT_THAT(network_links(root.path()),
              testing::ElementsAre("eth0 25 Gb/s", "eth2", "eth3 100 Mb/s", "mlx5_0 port 1 200 Gb/s"));
}

TEST(HostFactsTest, RoomOfAFileSystem) {
  const Room room = room_at("/tmp");
  EXPECT_GT(room.total_bytes, 0);
  EXPECT_LE(room.free_bytes, room.total_bytes);
  EXPECT_EQ(room_at("/nowhere").total_bytes, 0);
}

TEST(HostFactsTest, VariablesOfAJobWithoutSecrets) {
  const char* const environment[] = {"NCCL_DEBUG=INFO",       "OMP_NUM_THREADS=2", "LOADEDMODULES=gcc/12:openmpi/4.1",
                                     "CUDA_VISIBLE_DEVICES=", "UCX_TLS=a=b",       "PATH=/bin",
                                     "SLURM_JWT=abc",         "PBS_TOKEN=abc",     "OMPI_MCA_secret_thing=abc",
                                     "CONVOY_S3_KEY=abc",     "SLURM_BROKEN",      nullptr};
  EXPECT_THAT(
      job_variables(environment),
      testing::ElementsAre(testing::Pair("CUDA_VISIBLE_DEVICES", ""),
                           testing::Pair("LOADEDMODULES", "gcc/12:openmpi/4.1"), testing::Pair("NCCL_DEBUG", "INFO"),
                           testing::Pair("OMP_NUM_THREADS", "2"), testing::Pair("UCX_TLS", "a=b")));
}

TEST(HostFactsTest, DriverOfNvidia) {
  const TempFolder root;
  EXPECT_EQ(nvidia_driver(root.path()), "");
  put(root, "/proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023");
  EXPECT_EQ(nvidia_driver(root.path()), "535.104.05");
}

TEST(HostFactsTest, TheLeastOfAllMemoryLimits) {
  const TempFolder root;
  EXPECT_EQ(memory_limit(root.path()), 0);
  put(root, "/proc/meminfo", "MemTotal:        4000 kB\nMemAvailable:    3000 kB");
  EXPECT_EQ(memory_limit(root.path()), 4000 * 1024);
  // Version 2: the group has no limit, the one above has.
  put(root, "/proc/self/cgroup", "0::/slice/job");
  put(root, "/sys/fs/cgroup/slice/job/memory.max", "max");
  put(root, "/sys/fs/cgroup/slice/memory.max", "2048000");
  EXPECT_EQ(memory_limit(root.path()), 2048000);
  // Version 1 beside it; a huge number is no limit.
  put(root, "/proc/self/cgroup", "4:cpu,memory:/a/b\n0::/slice/job");
  put(root, "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(memory_limit(root.path()), 2048000);
  put(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "1024000");
  EXPECT_EQ(memory_limit(root.path()), 1024000);
}

TEST(HostFactsTest, PeakMemoryGrowsWithWhatIsTouched) {
  const double before = peak_memory();
  EXPECT_GT(before, 1e6);
  const std::vector<char> touched(static_cast<std::size_t>(before) + (64U << 20), 'x');
  EXPECT_GE(peak_memory(), before + (32 << 20)) << touched.back();
}

}  // namespace
}  // namespace convoy
