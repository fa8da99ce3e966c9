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

}  // namespace
}  // namespace convoy
