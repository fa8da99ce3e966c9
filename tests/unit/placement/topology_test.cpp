// SPDX-License-Identifier: Apache-2.0
#include "core/topology.hpp"

#include <gmock/gmock.h>

namespace convoy {
namespace {

using testing::ElementsAre;

/// Two NUMA nodes of two cores of two hardware threads; thread n + 4 is the second one of core n. A GPU hangs at each
/// node, another (with its sound device) at no node in particular, and the console's graphics at node 0.
constexpr const char* two_sockets = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
<object type="Machine" os_index="0" cpuset="0xff" complete_cpuset="0xff" allowed_cpuset="0xff" nodeset="0x3" complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1">
 <object type="Package" os_index="0" cpuset="0x33" complete_cpuset="0x33" nodeset="0x1" complete_nodeset="0x1" gp_index="2">
  <object type="NUMANode" os_index="0" cpuset="0x33" complete_cpuset="0x33" nodeset="0x1" complete_nodeset="0x1" gp_index="3" local_memory="1024"/>
  <object type="Core" os_index="0" cpuset="0x11" complete_cpuset="0x11" nodeset="0x1" complete_nodeset="0x1" gp_index="4">
   <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="5"/>
   <object type="PU" os_index="4" cpuset="0x10" complete_cpuset="0x10" nodeset="0x1" complete_nodeset="0x1" gp_index="6"/>
  </object>
  <object type="Core" os_index="1" cpuset="0x22" complete_cpuset="0x22" nodeset="0x1" complete_nodeset="0x1" gp_index="7">
   <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x1" complete_nodeset="0x1" gp_index="8"/>
   <object type="PU" os_index="5" cpuset="0x20" complete_cpuset="0x20" nodeset="0x1" complete_nodeset="0x1" gp_index="9"/>
  </object>
  <object type="Bridge" gp_index="10" bridge_type="0-1" depth="0" bridge_pci="0000:[00-0f]">
   <object type="PCIDev" gp_index="11" pci_busid="0000:03:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1" pci_link_speed="0.0"/>
   <object type="PCIDev" gp_index="12" pci_busid="0000:05:00.0" pci_type="0300 [1a03:2000] [1a03:2000] 41" pci_link_speed="0.0"/>
  </object>
 </object>
 <object type="Package" os_index="1" cpuset="0xcc" complete_cpuset="0xcc" nodeset="0x2" complete_nodeset="0x2" gp_index="13">
  <object type="NUMANode" os_index="1" cpuset="0xcc" complete_cpuset="0xcc" nodeset="0x2" complete_nodeset="0x2" gp_index="14" local_memory="1024"/>
  <object type="Core" os_index="2" cpuset="0x44" complete_cpuset="0x44" nodeset="0x2" complete_nodeset="0x2" gp_index="15">
   <object type="PU" os_index="2" cpuset="0x4" complete_cpuset="0x4" nodeset="0x2" complete_nodeset="0x2" gp_index="16"/>
   <object type="PU" os_index="6" cpuset="0x40" complete_cpuset="0x40" nodeset="0x2" complete_nodeset="0x2" gp_index="17"/>
  </object>
  <object type="Core" os_index="3" cpuset="0x88" complete_cpuset="0x88" nodeset="0x2" complete_nodeset="0x2" gp_index="18">
   <object type="PU" os_index="3" cpuset="0x8" complete_cpuset="0x8" nodeset="0x2" complete_nodeset="0x2" gp_index="19"/>
   <object type="PU" os_index="7" cpuset="0x80" complete_cpuset="0x80" nodeset="0x2" complete_nodeset="0x2" gp_index="20"/>
  </object>
  <object type="Bridge" gp_index="21" bridge_type="0-1" depth="0" bridge_pci="0000:[c0-cf]">
   <object type="PCIDev" gp_index="22" pci_busid="0000:c1:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1" pci_link_speed="0.0"/>
  </object>
 </object>
 <object type="Bridge" gp_index="23" bridge_type="0-1" depth="0" bridge_pci="0000:[40-4f]">
  <object type="PCIDev" gp_index="24" pci_busid="0000:44:00.0" pci_type="0300 [10de:2684] [10de:16f4] a1" pci_link_speed="0.0"/>
  <object type="PCIDev" gp_index="25" pci_busid="0000:44:00.1" pci_type="0403 [10de:22ba] [10de:16f4] a1" pci_link_speed="0.0"/>
 </object>
</object>
</topology>
)";

TEST(TopologyTest, KnowsCoresAndNodes) {
  const Topology host(two_sockets);
  const auto cpus = host.describe({0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_THAT(cpus, ElementsAre(Cpu{0, 0, 0}, Cpu{4, 0, 0}, Cpu{1, 1, 0}, Cpu{5, 1, 0}, Cpu{2, 2, 1}, Cpu{6, 2, 1},
                                Cpu{3, 3, 1}, Cpu{7, 3, 1}));
  EXPECT_EQ(count_cores(cpus), 4);
  EXPECT_EQ(count_cores(host.describe({4, 0})), 1);
  EXPECT_THAT(host.describe({12, 9}), ElementsAre(Cpu{9, 9, 0}, Cpu{12, 12, 0})) << "this host has no such threads";
}

TEST(TopologyTest, NodesOfGpus) {
  const Topology host(two_sockets);
  EXPECT_THAT(host.gpu_nodes(nullptr), ElementsAre(0, -1, 1)) << "by PCI address";
  EXPECT_THAT(host.gpu_nodes("2,0"), ElementsAre(1, 0));
  EXPECT_TRUE(host.gpu_nodes("GPU-1234").empty());
  EXPECT_TRUE(host.gpu_nodes("7").empty());
  EXPECT_TRUE(host.gpu_nodes("").empty());
}

TEST(TopologyTest, KnowsTheThreadsOfThisHost) {
  const auto& ids = cores_at_start();
  const auto cpus = Topology::of_this_host().describe(ids);
  EXPECT_EQ(cpus.size(), ids.size());
  EXPECT_GE(count_cores(cpus), 1);
}

}  // namespace
}  // namespace convoy
